//! Messages to the model's own form, by the chat template in its file.
//!
//! The template never sees the words of a message, only a mark in their place. So it cannot
//! mistake them for anything, and they are turned into tokens on their own, where the names of
//! control tokens mean nothing: a label like `<|im_end|>` stays a label.

use minijinja::value::{Value, ValueKind};
use minijinja::{Environment, Error as JinjaError, ErrorKind, State, context};

use super::super::{Message, Role};

/// Steps that a template may take: far more than any needs.
const FUEL: u64 = 5_000_000;

/// A part of a rendered prompt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Part {
    /// The template's own words, where names of control tokens mean them.
    Template(String),
    /// The words of a message.
    Words(String),
}

/// Renders messages, with the beginning of the model's turn at the end.
pub(super) fn render(
    template: &str,
    messages: &[Message],
    (begin, end): (&str, &str),
) -> Result<Vec<Part>, String> {
    let rendered = render_as_is(template, messages, begin, end);
    let [first, second, rest @ ..] = messages else {
        return rendered;
    };
    if rendered.is_ok() || first.role != Role::System || second.role != Role::User {
        return rendered;
    }
    // some families know no system message: its words then begin the first question
    let joined = Message::new(
        Role::User,
        format!("{}\n\n{}", first.content, second.content),
    );
    // where that does not help either, the first error tells more
    render_as_is(template, &[&[joined], rest].concat(), begin, end).or(rendered)
}

fn render_as_is(
    template: &str,
    messages: &[Message],
    begin: &str,
    end: &str,
) -> Result<Vec<Part>, String> {
    let mut environment = Environment::new();
    let syntax = environment
        .syntax()
        .to_builder()
        .trim_blocks(true)
        .lstrip_blocks(true)
        .build()
        .map_err(|e| e.to_string())?;
    environment.set_syntax(syntax);
    environment.set_fuel(Some(FUEL));
    environment.set_unknown_method_callback(python_method);
    environment.add_function(
        "raise_exception",
        |text: String| -> Result<Value, JinjaError> {
            Err(JinjaError::new(ErrorKind::InvalidOperation, text))
        },
    );
    // the day would make every prompt another one
    environment.add_function("strftime_now", |_format: String| String::new());
    let marked: Vec<Value> = messages
        .iter()
        .enumerate()
        .map(|(i, message)| {
            let role = match message.role {
                Role::System => "system",
                Role::User => "user",
                Role::Assistant => "assistant",
            };
            context! { role => role, content => mark(i) }
        })
        .collect();
    let text = environment
        .render_str(
            template,
            context! {
                messages => marked,
                bos_token => begin,
                eos_token => end,
                add_generation_prompt => true,
                enable_thinking => false,
            },
        )
        .map_err(|e| e.to_string())?;
    split(&text, messages)
}

/// Stands for the words of message `i`; private characters, so that no template has them.
fn mark(i: usize) -> String {
    format!("\u{f8f0}{i}\u{f8f1}")
}

fn split(text: &str, messages: &[Message]) -> Result<Vec<Part>, String> {
    let mut parts = Vec::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('\u{f8f0}') {
        let (number, after) = after.split_once('\u{f8f1}').ok_or("it takes words apart")?;
        let message = number
            .parse::<usize>()
            .ok()
            .and_then(|i| messages.get(i))
            .ok_or("it takes words apart")?;
        parts.push(Part::Template(before.to_owned()));
        parts.push(Part::Words(message.content.clone()));
        rest = after;
    }
    parts.push(Part::Template(rest.to_owned()));
    let last = messages.len().checked_sub(1).map(mark);
    if last.is_some_and(|last| !text.contains(&last)) {
        return Err("it leaves the last message out".into());
    }
    parts.retain(
        |part| !matches!(part, Part::Template(text) | Part::Words(text) if text.is_empty()),
    );
    Ok(parts)
}

/// The methods of Python's texts and tables that templates use.
fn python_method(
    _state: &mut State<'_, '_>,
    value: &Value,
    method: &str,
    args: &[Value],
) -> Result<Value, JinjaError> {
    let unknown = || JinjaError::new(ErrorKind::UnknownMethod, method.to_owned());
    let argument = |i: usize| args.get(i).and_then(Value::as_str);
    if value.kind() == ValueKind::Map {
        return match (method, args) {
            ("get", [key, ..]) => {
                let found = value.get_item(key)?;
                let default = args.get(1).cloned().unwrap_or(Value::from(()));
                Ok(if found.is_undefined() { default } else { found })
            }
            ("items", []) => {
                let mut pairs = Vec::new();
                for key in value.try_iter()? {
                    let item = value.get_item(&key)?;
                    pairs.push(Value::from(vec![key, item]));
                }
                Ok(Value::from(pairs))
            }
            _ => Err(unknown()),
        };
    }
    let text = value.as_str().ok_or_else(unknown)?;
    let set = |c: char| match argument(0) {
        Some(set) => set.contains(c),
        None => c.is_whitespace(),
    };
    Ok(match method {
        "strip" => Value::from(text.trim_matches(set)),
        "lstrip" => Value::from(text.trim_start_matches(set)),
        "rstrip" => Value::from(text.trim_end_matches(set)),
        "upper" => Value::from(text.to_uppercase()),
        "lower" => Value::from(text.to_lowercase()),
        "title" | "capitalize" => {
            let mut letters = text.chars();
            let first = letters.next().map(|c| c.to_uppercase().to_string());
            Value::from(first.unwrap_or_default() + letters.as_str())
        }
        "startswith" => Value::from(text.starts_with(argument(0).ok_or_else(unknown)?)),
        "endswith" => Value::from(text.ends_with(argument(0).ok_or_else(unknown)?)),
        "replace" => {
            let (old, new) = argument(0).zip(argument(1)).ok_or_else(unknown)?;
            Value::from(text.replace(old, new))
        }
        "split" => match argument(0) {
            Some(separator) => text.split(separator).map(Value::from).collect(),
            None => text.split_whitespace().map(Value::from).collect(),
        },
        _ => return Err(unknown()),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const CHATML: &str = "{% for message in messages %}{{'<|im_start|>' + message['role'] + '\n' + message['content'] + '<|im_end|>' + '\n'}}{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}";

    fn chat() -> Vec<Message> {
        vec![
            Message::new(Role::System, "Be short."),
            Message::new(Role::User, "Who is <|im_end|>?"),
        ]
    }

    fn joined(parts: &[Part]) -> String {
        let texts = parts.iter().map(|part| match part {
            Part::Template(text) => text.clone(),
            Part::Words(text) => format!("[{text}]"),
        });
        texts.collect()
    }

    #[test]
    fn words_stand_apart_from_the_template() {
        let parts = render(CHATML, &chat(), ("", "")).unwrap();
        assert_eq!(
            joined(&parts),
            "<|im_start|>system\n[Be short.]<|im_end|>\n\
             <|im_start|>user\n[Who is <|im_end|>?]<|im_end|>\n<|im_start|>assistant\n"
        );
    }

    #[test]
    fn a_family_without_system_messages_gets_their_words_with_the_question() {
        let template = "{{ bos_token }}{% if messages[0]['role'] == 'system' %}{{ raise_exception('no system') }}{% endif %}{% for m in messages %}<{{ m.role }}>{{ m.content | trim }}{% endfor %}";
        let parts = render(template, &chat(), ("<s>", "</s>")).unwrap();
        assert_eq!(joined(&parts), "<s><user>[Be short.\n\nWho is <|im_end|>?]");
    }

    #[test]
    fn python_methods_are_understood() {
        let template = "{% for m in messages %}{{ ' a '.strip() }}{{ m.get('x', 'none') }}{% if m.role.startswith('us') %}{{ m.content.split('</think>')[-1] }}{% endif %}{% endfor %}";
        let parts = render(template, &chat(), ("", "")).unwrap();
        assert_eq!(joined(&parts), "anoneanone[Who is <|im_end|>?]");
    }

    #[test]
    fn templates_that_cannot_serve_are_told() {
        let refused = |template: &str| render(template, &chat(), ("", "")).unwrap_err();
        assert!(refused("{% for").contains("syntax error"));
        assert!(refused("nothing").contains("leaves the last message out"));
        assert!(refused("{{ messages[1].content[:2] }}").contains("words"));
        assert!(refused("{% for i in range(100000) %}{% for j in range(100000) %}{{ i }}{% endfor %}{% endfor %}").contains("fuel"));
    }
}
