//! Words for a country or a continent and its people that are not its name: `us`, `british`,
//! `canadians`, `african`.

use std::collections::HashMap;
use std::sync::OnceLock;

/// Names under which graphs file a country, then other words for it and its people. One country
/// a line; plurals in `s` are left to the caller.
const COUNTRIES: &str = "\
united states of america,united states,usa,us:american,america,us,usa,u s,u s a,united states,the states
united kingdom,uk,great britain:british,britain,great britain,uk,u k
england:english
scotland:scottish,scots
wales:welsh
ireland,republic of ireland:irish
russia,russian federation:russian
germany:german
france:french
italy:italian
spain:spanish,spaniard
portugal:portuguese
netherlands,the netherlands:dutch,holland
belgium:belgian
switzerland:swiss
austria:austrian
poland:polish,poles
czech republic,czechia:czech
hungary:hungarian
romania:romanian
bulgaria:bulgarian
greece:greek
turkey,turkiye:turkish,turks
sweden:swedish,swede
norway:norwegian
denmark:danish,dane
finland:finnish,finn
iceland:icelandic
ukraine:ukrainian
serbia:serbian
croatia:croatian
china,peoples republic of china:chinese,prc
taiwan:taiwanese
japan:japanese
south korea,republic of korea:korean,south korean
north korea:north korean
india:indian
pakistan:pakistani
bangladesh:bangladeshi
sri lanka:sri lankan
nepal:nepalese,nepali
afghanistan:afghan
iran:iranian,persian
iraq:iraqi
israel:israeli
lebanon:lebanese
syria:syrian
jordan:jordanian
saudi arabia:saudi,saudi arabian
united arab emirates,uae:emirati,uae
egypt:egyptian
morocco:moroccan
algeria:algerian
tunisia:tunisian
libya:libyan
ethiopia:ethiopian
kenya:kenyan
nigeria:nigerian
ghana:ghanaian
south africa:south african
zimbabwe:zimbabwean
canada:canadian
mexico:mexican
cuba:cuban
jamaica:jamaican
haiti:haitian
dominican republic:dominican
puerto rico:puerto rican
guatemala:guatemalan
costa rica:costa rican
panama:panamanian
colombia:colombian
venezuela:venezuelan
ecuador:ecuadorian
peru:peruvian
bolivia:bolivian
chile:chilean
argentina:argentine,argentinian
brazil:brazilian
uruguay:uruguayan
paraguay:paraguayan
australia:australian,aussie
new zealand:new zealander,kiwi
philippines,the philippines:filipino,philippine
indonesia:indonesian
malaysia:malaysian
singapore:singaporean
thailand:thai
vietnam:vietnamese
cambodia:cambodian
european union,eu:eu,e u
soviet union,ussr:soviet,ussr,u s s r
africa:african
asia:asian
europe:european
north america:north american
south america:south american
oceania:oceanian
antarctica:antarctic";

/// Names of the country that normalised `words` stand for, the usual one first.
pub(crate) fn country(words: &str) -> Option<impl Iterator<Item = &'static str>> {
    static BY_FORM: OnceLock<HashMap<&str, &str>> = OnceLock::new();
    let by_form = BY_FORM.get_or_init(|| {
        COUNTRIES
            .lines()
            .filter_map(|line| line.split_once(':'))
            .flat_map(|(names, forms)| forms.split(',').map(move |form| (form, names)))
            .collect()
    });
    let names = by_form
        .get(words)
        .or_else(|| by_form.get(words.strip_suffix('s')?))?;
    Some(names.split(','))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn people_and_short_forms_stand_for_the_country() {
        for (words, name) in [
            ("us", "united states of america"),
            ("canadians", "canada"),
            ("british", "united kingdom"),
        ] {
            assert_eq!(country(words).unwrap().next(), Some(name));
        }
        assert!(country("martian").is_none());
        assert!(country("canada").is_none());
    }

    #[test]
    fn every_line_has_names_and_other_words() {
        for line in COUNTRIES.lines() {
            let (names, forms) = line.split_once(':').unwrap();
            assert!(!names.is_empty() && !forms.is_empty(), "{line}");
        }
    }
}
