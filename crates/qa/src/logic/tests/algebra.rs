//! The operators beyond GrailQA's: by hand, and against SPARQL.

use std::num::NonZeroU32;

use wherefore_graph::Adjacency;

use super::*;

/// Five countries with areas, people, neighbours and cities:
///
/// ```text
///      people  area  borders     cities (people)
/// A        90    30  B, C        a1 (10), a2 (20)
/// B        60    10  A           b1 (25)
/// C        60     -  A           -
/// D         8     4  -           d1 (-)
/// E         -     2  -           -
/// ```
const COUNTRIES: &str = "A\ttype\tcountry\nB\ttype\tcountry\nC\ttype\tcountry\nD\ttype\tcountry\nE\ttype\tcountry\n\
A\tpeople\t90\nB\tpeople\t60\nC\tpeople\t60\nD\tpeople\t8\n\
A\tarea\t30\nB\tarea\t10\nD\tarea\t4\nE\tarea\t2\n\
A\tborder\tB\nB\tborder\tA\nA\tborder\tC\nC\tborder\tA\n\
A\tcity\ta1\nA\tcity\ta2\nB\tcity\tb1\nD\tcity\td1\n\
a1\tsize\t10\na2\tsize\t20\nb1\tsize\t25\n\
A\tcapital\ta1\nB\tcapital\tb1\n\
A\tfounded\t1990-10-03\nB\tfounded\t1918-11\nD\tfounded\t1291\n\
A\tprice\t0.1\nB\tprice\t0.2\n";

#[test]
fn every_operator_gives_what_a_hand_computes() {
    let (_folder, store) = store(COUNTRIES, "tsv");
    for (form, wanted) in [
        ("(EXCEPT country (JOIN border A))", &["A", "D", "E"][..]),
        ("(AND country (OR B))", &["B"]),
        // 90 > 60 = 60 > 8: the second of two ties with the third
        ("(TOP country people 2)", &["A", "B", "C"]),
        ("(TOP country people 1)", &["A"]),
        ("(TOP country people 9)", &["A", "B", "C", "D"]),
        ("(BOTTOM country people 1)", &["D"]),
        ("(BOTTOM country people 2)", &["B", "C", "D"]),
        ("(NTH country people 2)", &["B", "C"]),
        ("(NTH country people 3)", &["D"]),
        ("(NTH country people 4)", &[]),
        ("(NTHLAST country area 2)", &["D"]),
        // A has two neighbours, B and C one, D and E none
        ("(ARGMAX country (HOW_MANY border))", &["A"]),
        ("(ARGMIN country (HOW_MANY border))", &["D", "E"]),
        ("(AND country (eq (HOW_MANY border) 1))", &["B", "C"]),
        ("(AND country (lt (HOW_MANY border) 1))", &["D", "E"]),
        ("(ge (HOW_MANY border) 2)", &["A"]),
        // E has no neighbour, and that is less than its area of 2; D's is 4
        ("(lt (HOW_MANY border) area)", &["A", "B", "D", "E"]),
        ("(ARGMAX country (HOW_MANY city (gt size 15)))", &["A", "B"]),
        // people per area: 90/30 = 3, 60/10 = 6, 8/4 = 2
        ("(ARGMAX country (DIV people area))", &["B"]),
        ("(AND country (le (DIV people area) 3))", &["A", "D"]),
        ("(gt people (MUL area 3))", &["B"]),
        // true of everything, and of nothing
        (
            "(AND country (lt (SUB 0 1) (COUNT country)))",
            &["A", "B", "C", "D", "E"],
        ),
        ("(AND country (gt (SUB 0 1) (COUNT country)))", &[]),
        ("(ge people (MUL 3 area))", &["A", "B"]),
        // A's cities have 10 + 20 = 30, on average 15; B's 25
        ("(ARGMAX country (SUM city size))", &["A"]),
        ("(ARGMAX country (AVG city size))", &["B"]),
        ("(eq (MIN city size) 10)", &["A"]),
        ("(eq (MAX city size) (JOIN capital size))", &["B"]),
        ("(eq area (ITS (SUM city size)))", &["A"]),
        ("(THE (OR A) people)", &["90"]),
        ("(THE (OR B C) people)", &["60"]),
        ("(THE country people)", &[]),
        // 90 + 60 + 60 + 8 = 218, by four countries 54.5
        ("(SUM country people)", &["218"]),
        ("(AVG country people)", &["54.5"]),
        ("(MAX country people)", &["90"]),
        ("(MIN country area)", &["2"]),
        ("(SUM (JOIN border E) people)", &[]),
        ("(COUNT (JOIN border E))", &["0"]),
        ("(SUM country price)", &["0.3"]),
        ("(gt people (AVG country people))", &["A", "B", "C"]),
        ("(gt people (THE (OR B) people))", &["A"]),
        ("(SUB (MAX country people) (THE (OR D) people))", &["82"]),
        ("(DIV (COUNT country) 2)", &["2.5"]),
        ("(DIV (COUNT country) (COUNT (JOIN border E)))", &[]),
        ("(MUL 1e300 1e300)", &[]),
        ("(MAX country founded)", &["1990-10-03"]),
        ("(MIN country founded)", &["1291"]),
        ("(TOP country founded 2)", &["A", "B"]),
        ("(gt founded (MIN country founded))", &["A", "B"]),
        ("(ANY (AND (OR b1) (JOIN (R capital) B)))", &["yes"]),
        ("(ANY (AND (OR a1) (JOIN (R capital) B)))", &["no"]),
        ("(IS gt (THE (OR A) people) (THE (OR B) people))", &["yes"]),
        ("(IS eq (COUNT country) 5)", &["yes"]),
        ("(IS ne (COUNT country) 5)", &["no"]),
        ("(IS lt (THE (OR E) people) 5)", &["no"]),
        ("(IS lt (MIN country founded) 1900)", &["yes"]),
        (
            "(TABLE country city (HOW_MANY border) (ORDER people desc))",
            &[
                "A | a1+a2 | 2",
                "B | b1 | 1",
                "C |  | 1",
                "D | d1 | 0",
                "E |  | 0",
            ],
        ),
        (
            "(TABLE country (DIV people area) (ORDER people asc) (SLICE 2 3))",
            &["B | 6", "C | "],
        ),
        ("(TABLE country (SLICE 5 9))", &["E"]),
    ] {
        assert_eq!(answers(form, &store), wanted, "{form}");
        let plan = plan(form, &store);
        let (run, asked) = (by_running(&plan, &store), by_sparql(&plan, &store).unwrap());
        assert!(
            agree(&run, &asked),
            "{form}\n{run:?}\n{asked:?}\n{}",
            plan.sparql()
        );
    }
}

#[test]
fn times_are_neither_added_nor_compared_with_numbers() {
    let (_folder, store) = store(COUNTRIES, "tsv");
    for (form, reason) in [
        (
            "(SUM country founded)",
            "`founded` is not a number: times cannot be",
        ),
        (
            "(ARGMAX country (AVG border founded))",
            "`founded` is not a number",
        ),
        (
            "(ARGMAX country (SUB founded 5))",
            "`(SUB founded 5)` is not a number",
        ),
        ("(ADD (MAX country founded) 1)", "is not a number"),
        (
            "(lt (HOW_MANY border) 1990-01-01)",
            "is not a comparison of numbers with numbers",
        ),
        (
            "(IS lt (COUNT country) (MAX country founded))",
            "is not a comparison",
        ),
        (
            "(ARGMAX country (ADD people \"many\"))",
            "is not a number or a date",
        ),
    ] {
        let error = Plan::new(&form.parse().unwrap(), &store, now()).unwrap_err();
        assert!(error.to_string().contains(reason), "{form}: {error}");
    }
    // a root inside a set cannot be written, and is refused where it is built
    let inside = Form::Any(Box::new(Form::Name("country".into()))).joined(Relation::new("border"));
    let error = Plan::new(&inside, &store, now()).unwrap_err();
    assert!(error.to_string().contains("it is no set"), "{error}");
}

#[test]
fn the_new_operators_are_spoken() {
    let (_folder, store) = store(COUNTRIES, "tsv");
    for (form, english) in [
        (
            "(AND country (JOIN border A))",
            "countries whose border is A",
        ),
        (
            "(EXCEPT country (JOIN border A))",
            "countries other than those whose border is A",
        ),
        ("(EXCEPT country (OR A B))", "countries other than A or B"),
        (
            "(TOP city population 3)",
            "the 3 cities with the largest population",
        ),
        ("(NTH river length 2)", "the second longest river"),
        (
            "(BOTTOM (AND river (JOIN located_in [Germany])) length 2)",
            "the 2 shortest rivers among those located in Germany",
        ),
        (
            "(ARGMAX (AND city (JOIN located_in [France])) population)",
            "the city with the largest population among those located in France",
        ),
        (
            "(NTHLAST country founded 2)",
            "the country with the second earliest founded",
        ),
        (
            "(ARGMAX country (HOW_MANY border))",
            "the country with the largest number of borders",
        ),
        (
            "(ARGMAX country (HOW_MANY (R located_in) city))",
            "the country with the largest number of cities located in it",
        ),
        (
            "(gt (HOW_MANY city (gt size 15)) 1)",
            "things whose number of (cities whose size is more than 15) is more than 1",
        ),
        (
            "(AND country (gt (DIV people area) 3))",
            "countries whose ratio of people to area is more than 3",
        ),
        (
            "(AND country (gt area (THE (OR A) area)))",
            "countries whose area is more than that of A",
        ),
        (
            "(AND country (JOIN borders [Germany]) (lt area 5))",
            "countries with borders: Germany and whose area is less than 5",
        ),
        (
            "(AND city (JOIN (R capital) [France]))",
            "cities that are the capital of France",
        ),
        (
            "(ne area people)",
            "things whose area is not equal to their people",
        ),
        (
            "(gt people (MUL 3 area))",
            "things with people: more than 3 times their area",
        ),
        ("(eq founded 1291)", "things with founded: equal to 1291"),
        (
            "(lt founded (MAX country founded))",
            "things with founded: before the latest founded among countries",
        ),
        (
            "(gt area (AVG country area))",
            "things whose area is more than the average area of countries",
        ),
        (
            "(eq (SUM city size) 30)",
            "things whose total size of their cities is equal to 30",
        ),
        (
            "(MAX country (HOW_MANY (R border)))",
            "the largest number of (things that have it as border) among countries",
        ),
        ("(THE (OR A) area)", "the area of A"),
        (
            "(ARGMAX country (SUB people area))",
            "the country with the largest (people minus area)",
        ),
        (
            "(COUNT (AND country (JOIN border A)))",
            "how many countries whose border is A",
        ),
        ("(COUNT (JOIN (R city) A))", "how many cities of A"),
        (
            "(IS gt (COUNT (AND country (JOIN border A))) 1)",
            "whether there are more than 1 countries whose border is A",
        ),
        (
            "(IS gt (COUNT (JOIN border A)) (COUNT country))",
            "whether (the number of things whose border is A) is more than the number of countries",
        ),
        (
            "(DIV (COUNT country) 2)",
            "(the number of countries) divided by 2",
        ),
        ("(ANY country)", "whether there are any countries"),
        (
            "(ANY (JOIN border A))",
            "whether there are any things whose border is A",
        ),
        (
            "(ANY (AND (OR b1) (JOIN (R capital) B)))",
            "whether b1 is the capital of B",
        ),
        (
            "(ANY (AND (OR b1) (JOIN located_in B)))",
            "whether b1 is located in B",
        ),
        (
            "(ANY (AND (OR A) country (gt area 5)))",
            "whether A is a country whose area is more than 5",
        ),
        (
            "(ANY (AND (OR A) (gt area 5)))",
            "whether A is something whose area is more than 5",
        ),
        (
            "(IS gt (THE (OR A) area) (THE (OR B) area))",
            "whether the area of A is more than that of B",
        ),
        (
            "(IS lt (THE (OR A) people) (THE (OR B) people))",
            "whether the people of A are less than those of B",
        ),
        (
            "(TABLE country capital (HOW_MANY city) (ORDER area desc) (SLICE 1 3))",
            "for each country: the capital and the number of cities, ordered by area, largest first, only the first 3 rows",
        ),
        (
            "(TABLE (JOIN (R city) A) size)",
            "for each city of A: the size",
        ),
        (
            "(TABLE (AND country (JOIN borders [Germany])) area capital city)",
            "for each (country with borders: Germany): the area, the capital and the city",
        ),
        (
            "(TABLE country (ORDER founded asc))",
            "a list of countries, ordered by founded, earliest first",
        ),
    ] {
        let form: Form = form.parse().unwrap();
        assert_eq!(form.english(&store).unwrap(), english);
    }
}

#[test]
fn evidence_is_what_was_counted_or_what_the_graph_says_instead() {
    let (_folder, store) = store(COUNTRIES, "tsv");
    for (form, wanted) in [
        // both numbers
        (
            "(IS gt (THE (OR A) people) (THE (OR B) people))",
            &["A people 90", "B people 60"][..],
        ),
        (
            "(SUM (JOIN border A) people)",
            &["B border A", "B people 60", "C border A", "C people 60"],
        ),
        ("(MAX (JOIN border A) area)", &["B border A", "B area 10"]),
        ("(COUNT (JOIN (R city) A))", &["A city a1", "A city a2"]),
        (
            "(ANY (AND (OR b1) (JOIN (R capital) B)))",
            &["B capital b1"],
        ),
        // no: B's capital is another one
        (
            "(ANY (AND (OR a1) (JOIN (R capital) B)))",
            &["B capital b1"],
        ),
        // no: A has fewer
        ("(ANY (AND (OR A) (gt people 100)))", &["A people 90"]),
        (
            "(ANY (EXCEPT (JOIN border A) country))",
            &[
                "B border A",
                "B type country",
                "C border A",
                "C type country",
            ],
        ),
        (
            "(TABLE (JOIN border C) city)",
            &["A border C", "A city a1", "A city a2"],
        ),
    ] {
        let plan = plan(form, &store);
        let limits = RunLimits::default();
        let told: Vec<String> = (Runner::new(&plan, &store, &limits)
            .unwrap()
            .grounds()
            .unwrap())
        .iter()
        .map(|t| {
            format!(
                "{} {} {}",
                store.entity_label(t.head).unwrap(),
                store.relation_label(t.relation).unwrap(),
                store.entity_label(t.tail).unwrap()
            )
        })
        .collect();
        assert_eq!(told, wanted, "{form}");
    }
    // each part of a number by itself
    let sum = plan("(AVG country people)", &store);
    let limits = RunLimits::default();
    let mut runner = Runner::new(&sum, &store, &limits).unwrap();
    let outcome = runner.run().unwrap();
    assert_eq!(labels(&store, outcome.entities()), ["A", "B", "C", "D"]);
    assert_eq!(runner.evidence(outcome.entities()[3]).unwrap().len(), 2);
    assert_eq!(
        outcome.claims(&store).unwrap(),
        ["\"54.5\"^^<http://www.w3.org/2001/XMLSchema#double>"]
    );
}

#[test]
fn everything_is_limited() {
    let (_folder, store) = store(COUNTRIES, "tsv");
    let limits = RunLimits {
        rows: 6,
        ..RunLimits::default()
    };
    for form in [
        "(ge (HOW_MANY border) 0)",
        "(TABLE country type border city)",
    ] {
        let plan = plan(form, &store);
        let error = run(&plan, &store, &limits).unwrap_err();
        assert!(
            matches!(error, Error::FormTooLarge { limit: 6 }),
            "{form}: {error}"
        );
    }
}

fn any_measure(set: BoxedStrategy<Form>) -> (BoxedStrategy<Measure>, BoxedStrategy<Measure>) {
    let relation = ((0..3u8), any::<bool>()).prop_map(|(r, reversed)| Relation {
        name: format!("r{r}"),
        reversed,
    });
    let path = relation.clone().prop_map(|r| vec![r]);
    let valued = prop_oneof![4 => Just("p"), 1 => Just("from"), 1 => Just("to")];
    let leaf = prop_oneof![
        3 => valued.clone().prop_map(|v| Measure::Path(vec![Relation::new(v)])),
        1 => (relation, valued).prop_map(|(r, v)| Measure::Path(vec![r, Relation::new(v)])),
        2 => path.clone().prop_map(|p| Measure::HowMany(p, None)),
        1 => (path.clone(), set).prop_map(|(p, s)| Measure::HowMany(p, Some(Box::new(s)))),
    ];
    // sums of these are exact in any order
    let over = path.clone();
    let exact = leaf.prop_recursive(2, 6, 2, move |inner| {
        let operand = prop_oneof![
            3 => inner.clone(),
            1 => (0..4i32).prop_map(|n| Measure::Constant(Constant::Bare(n.to_string()))),
        ];
        let half = Measure::Constant(Constant::Bare("2".into()));
        let exact = prop::sample::select(vec![
            Aggregate::Sum,
            Aggregate::Largest,
            Aggregate::Smallest,
            Aggregate::Only,
        ]);
        let signs = vec![Operator::Add, Operator::Subtract, Operator::Multiply];
        prop_oneof![
            (exact, over.clone(), inner.clone()).prop_map(|(a, p, m)| Measure::Over(
                a,
                p,
                Box::new(m)
            )),
            (prop::sample::select(signs), operand.clone(), operand)
                .prop_map(|(o, a, b)| { Measure::Arithmetic(o, Box::new(a), Box::new(b)) }),
            inner.prop_map(move |m| {
                Measure::Arithmetic(Operator::Divide, Box::new(m), Box::new(half.clone()))
            }),
        ]
    });
    let exact = exact.boxed();
    let any = prop_oneof![
        3 => exact.clone(),
        1 => (path, exact.clone())
            .prop_map(|(p, m)| Measure::Over(Aggregate::Average, p, Box::new(m))),
        1 => (exact.clone(), exact.clone()).prop_map(|(a, b)| {
            Measure::Arithmetic(Operator::Divide, Box::new(a), Box::new(b))
        }),
    ];
    (exact, any.boxed())
}

/// Forms of every operator over the names of [`any_lines`].
fn any_of_all() -> impl Strategy<Value = Form> {
    let is = prop::sample::select(vec![
        Comparison::Less,
        Comparison::AtMost,
        Comparison::Greater,
        Comparison::AtLeast,
        Comparison::Equal,
        Comparison::NotEqual,
    ]);
    let rank = (any::<bool>(), 0..3u8, 1..4u32).prop_map(|(largest, place, k)| {
        let k = NonZeroU32::new(k).unwrap();
        Rank {
            extreme: [Extreme::Smallest, Extreme::Largest][usize::from(largest)],
            place: [Place::Best, Place::First(k), Place::Nth(k)][usize::from(place)],
        }
    });
    let class = (0..2u8).prop_map(|c| Form::Name(format!("C{c}")));
    let base = any_set().boxed();
    let (exact, measure) = any_measure(base.clone());
    let number_of = move |set: BoxedStrategy<Form>, by: BoxedStrategy<Measure>| {
        let leaf = prop_oneof![
            (0..6i32).prop_map(|n| Number::Constant(Constant::Bare(n.to_string()))),
            set.clone().prop_map(|s| Number::Count(Box::new(s))),
            (prop::sample::select(Aggregate::ALL.to_vec()), set, by)
                .prop_map(|(a, s, m)| Number::Of(a, Box::new(s), m)),
        ];
        leaf.prop_recursive(1, 3, 2, |inner| {
            (
                prop::sample::select(Operator::ALL.to_vec()),
                inner.clone(),
                inner,
            )
                .prop_map(|(o, a, b)| Number::Arithmetic(o, Box::new(a), Box::new(b)))
        })
        .boxed()
    };
    let operand = prop_oneof![2 => base.clone(), 2 => class.clone()].boxed();
    let number = number_of(operand.clone(), exact.clone());
    let than = prop_oneof![
        2 => number.clone().prop_map(Than::Number),
        1 => measure.clone().prop_map(Than::Measure),
    ];
    let compare = (is.clone(), measure.clone(), than)
        .prop_map(|(is, by, than)| Form::Compare(is, by, than))
        .boxed();
    let one = (0..4u8).prop_map(|e| Form::Or(vec![Form::Name(format!("e{e}"))]));
    let part = prop_oneof![3 => operand.clone(), 3 => compare.clone(), 1 => one].boxed();
    let set = prop_oneof![
        (part.clone(), part.clone()).prop_map(|(a, b)| Form::Except(Box::new(a), Box::new(b))),
        (rank, part.clone(), measure.clone()).prop_map(|(rank, of, by)| Form::Best(
            rank,
            Box::new(of),
            by
        )),
        prop::collection::vec(part.clone(), 2..4).prop_map(Form::And),
        (base, compare.clone()).prop_map(|(a, b)| Form::Or(vec![a, b])),
        compare,
    ]
    .boxed();
    let number = prop_oneof![number, number_of(set.clone(), exact)].boxed();
    let numbers = number
        .clone()
        .prop_filter("a constant is a set", |n| !matches!(n, Number::Constant(_)));
    let order = (measure.clone(), any::<bool>());
    let slice = (1..4u32, 0..3u32);
    let table = (
        (class, part),
        prop::collection::vec(measure, 0..3),
        prop::option::of(order),
        prop::option::of(slice),
    )
        .prop_map(|((class, part), columns, order, slice)| {
            let whole = |n| NonZeroU32::new(n).unwrap();
            Form::Table(Box::new(Table {
                of: Form::And(vec![class, part]),
                columns,
                order: order.map(|(by, largest)| {
                    (
                        by,
                        [Extreme::Smallest, Extreme::Largest][usize::from(largest)],
                    )
                }),
                slice: slice.map(|(from, more)| (whole(from), whole(from + more))),
            }))
        });
    prop_oneof![
        4 => set.clone(),
        2 => numbers.prop_map(Form::Number),
        1 => set.prop_map(|s| Form::Any(Box::new(s))),
        1 => (is, number.clone(), number).prop_map(|(is, a, b)| Form::Is(is, a, b)),
        2 => table,
    ]
}

proptest! {
    #![proptest_config(cases())]

    #[test]
    fn what_is_written_of_all_operators_reads_back(form in any_of_all()) {
        for notation in [Notation::Plain, Notation::Named] {
            let text = form.written(notation);
            prop_assert_eq!(text.parse::<Form>().map_err(|e| e.to_string()), Ok(form.clone()), "{}", text);
        }
        let bracketed: Form = form.written(Notation::Bracketed).parse().unwrap();
        prop_assert_eq!(&bracketed, &form);
        prop_assert_eq!(form.normal().normal(), form.normal());
        let same = form.renamed(&mut str::to_owned, &mut str::to_owned);
        prop_assert_eq!(&same, &form);
        prop_assert!(form.depth() <= MAX_DEPTH && form.parts() > 0);
    }

    #[test]
    fn running_and_sparql_agree_on_every_operator(
        lines in any_lines(),
        forms in prop::collection::vec(any_of_all(), 8),
    ) {
        let (_folder, store) = store(&lines, "nt");
        let limits = RunLimits::default();
        for form in forms {
            let plan = match Plan::new(&form, &store, now()) {
                Ok(plan) => plan,
                // numbers with times
                Err(Error::FormValue { .. }) => continue,
                Err(error) => panic!("{form}: {error}"),
            };
            prop_assert_eq!(plan.missing(), [""; 0]);
            let mut runner = Runner::new(&plan, &store, &limits).unwrap();
            let outcome = runner.run().unwrap();
            let run = shown(outcome.clone(), &store);
            if let Some(asked) = by_sparql(&plan, &store) {
                prop_assert!(agree(&run, &asked), "{}\n{:?}\n{:?}\n{}\n{}", form, run, asked, plan.sparql(), lines);
            }
            let normal = Plan::new(&form.normal(), &store, now()).unwrap();
            prop_assert!(agree(&run, &by_running(&normal, &store)), "{} as {}", form, form.normal());
            prop_assert!(!form.english(&store).unwrap().is_empty());

            // what is told is in the graph, and only of what belongs to it
            for triple in runner.grounds().unwrap() {
                prop_assert!(store.contains(triple).unwrap());
            }
            for id in 0..wherefore_graph::Adjacency::entity_bound(&store) {
                let entity = EntityId(id as u32);
                let evidence = runner.evidence(entity).unwrap();
                let inside = outcome.entities().contains(&entity);
                let is_whole = matches!(outcome, Outcome::Entities(_));
                prop_assert!(evidence.is_empty() || inside || !is_whole, "{}", form);
            }
        }
    }
}
