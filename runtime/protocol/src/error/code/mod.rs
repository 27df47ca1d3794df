//! Every error code of the documents as data: name, meaning, class, advice. [`super::judge`]
//! classifies whole responses.

mod filters;
mod general;
mod processing;
mod request;
mod row;

pub use filters::*;
pub use general::*;
pub use processing::*;
pub use request::*;
pub use row::{Class, ErrorCode};

/// The whole table in the order of the documents: from -1000 downwards.
pub fn all() -> impl Iterator<Item = &'static ErrorCode> {
    [
        general::TABLE,
        request::TABLE,
        processing::TABLE,
        filters::TABLE,
    ]
    .into_iter()
    .flatten()
}

/// The row of this code.
pub fn lookup(code: i64) -> Option<&'static ErrorCode> {
    all().find(|row| row.code == code)
}

/// The class of a code, listed or not. An unlisted code of the 10xx range (general server or
/// network issues) does not show whether the request was carried out. Any other unlisted code is a
/// refusal.
pub fn class_of(code: i64) -> Class {
    match lookup(code) {
        Some(row) => row.class,
        None if (-1099..=-1000).contains(&code) => Class::Unknown,
        None => Class::Definite,
    }
}
#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_descends_without_duplicates() {
        let codes: Vec<i64> = all().map(|row| row.code).collect();
        assert!(codes.windows(2).all(|pair| pair[0] > pair[1]), "{codes:?}");
    }

    /// The codes of the core interface, then those that are public facts
    /// (docs/interface/errors.md#10xx and the following tables).
    #[test]
    fn the_table_has_exactly_the_documented_codes() {
        let first = [
            1000..=1007,
            1014..=1016,
            1020..=1020,
            1022..=1023,
            1100..=1106,
            1111..=1112,
            1114..=1121,
            1125..=1125,
            1127..=1128,
            1130..=1130,
            1136..=1136,
            2010..=2011,
            2013..=2016,
            2018..=2018,
            2020..=2022,
            2024..=2026,
            4000..=4027,
            4029..=4032,
            4044..=4045,
            4055..=4058,
            4060..=4062,
            4084..=4084,
            4086..=4088,
            4114..=4115,
            4118..=4118,
            4131..=4131,
            4135..=4135,
            4137..=4142,
            4164..=4165,
            4183..=4184,
        ];
        let further = [
            1013..=1013,
            1021..=1021,
            1108..=1110,
            1113..=1113,
            2019..=2019,
            2023..=2023,
            2027..=2028,
            4028..=4028,
            4046..=4048,
            4059..=4059,
            4116..=4116,
            4161..=4161,
            4225..=4225,
        ];
        let mut documented: Vec<i64> = first.into_iter().chain(further).flatten().collect();
        documented.sort_unstable();
        let listed: Vec<i64> = all().map(|row| -row.code).collect();
        assert_eq!(listed, documented);
    }

    #[test]
    fn every_row_has_a_meaning_and_an_advice() {
        for row in all() {
            assert!(
                !row.meaning.is_empty() && !row.meaning.ends_with('.'),
                "{row:?}"
            );
            assert!(
                row.advice.len() > 10 && row.advice.ends_with('.'),
                "{row:?}"
            );
            assert_eq!(lookup(row.code), Some(row));
        }
    }

    #[test]
    fn only_outcomes_that_the_documents_call_unknown_are_unknown() {
        let of = |class| {
            let rows = all().filter(move |row| row.class == class);
            rows.map(|row| row.code).collect::<Vec<_>>()
        };
        assert_eq!(of(Class::Unknown), [-1000, -1001, -1006, -1007]);
        assert_eq!(of(Class::Wait), [-1003, -1015, -1016]);
        assert_eq!(
            of(Class::Fatal),
            [-1002, -1005, -1022, -2014, -2015, -4056, -4057, -4088]
        );
    }

    #[test]
    fn unlisted_codes_are_refusals_outside_the_server_range() {
        assert_eq!(class_of(-1008), Class::Unknown);
        assert_eq!(class_of(-1099), Class::Unknown);
        assert_eq!(class_of(-5021), Class::Definite);
        assert_eq!(class_of(-32601), Class::Definite);
        assert_eq!(class_of(NO_SUCH_ORDER.code), Class::Definite);
    }
}
