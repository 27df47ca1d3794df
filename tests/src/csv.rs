//! A small CSV reader after RFC 4180: commas, double quotes, one header line.

/// Why a text is not a table with the expected columns.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CsvError {
    /// The first line does not have the expected columns.
    #[error("the columns are {found:?}, not {expected:?}")]
    Header {
        /// The columns of the text.
        found: String,
        /// The expected columns.
        expected: String,
    },
    /// A row has a wrong number of fields.
    #[error("line {line} has {found} fields, not {expected}")]
    Fields {
        /// The line, from 1.
        line: usize,
        /// Number of fields in this line.
        found: usize,
        /// Number of fields in the header.
        expected: usize,
    },
}

/// The rows of a table with exactly these columns, without the header.
pub fn rows(text: &str, columns: &str) -> Result<Vec<Vec<String>>, CsvError> {
    let mut lines = text.lines();
    let header = lines.next().unwrap_or_default();
    if header != columns {
        return Err(CsvError::Header {
            found: header.to_owned(),
            expected: columns.to_owned(),
        });
    }
    let expected = columns.split(',').count();
    lines
        .zip(2..)
        .map(|(text, line)| {
            let row = fields(text);
            if row.len() == expected {
                Ok(row)
            } else {
                Err(CsvError::Fields {
                    line,
                    found: row.len(),
                    expected,
                })
            }
        })
        .collect()
}

fn fields(line: &str) -> Vec<String> {
    let mut fields = vec![String::new()];
    let mut quoted = false;
    let mut chars = line.chars().peekable();
    while let Some(char) = chars.next() {
        let field = fields.len() - 1;
        match char {
            '"' if quoted && chars.peek() == Some(&'"') => {
                chars.next();
                fields[field].push('"');
            }
            '"' => quoted = !quoted,
            ',' if !quoted => fields.push(String::new()),
            char => fields[field].push(char),
        }
    }
    fields
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_may_be_empty_or_quoted() {
        let read = rows("a,b,c\n1,,3\n\"x,\"\"y\"\"\",2,\n", "a,b,c").unwrap();
        assert_eq!(read, [["1", "", "3"], ["x,\"y\"", "2", ""]]);
    }

    #[test]
    fn other_columns_and_short_rows_are_errors() {
        assert!(matches!(rows("a,c\n", "a,b"), Err(CsvError::Header { .. })));
        assert!(matches!(rows("", "a,b"), Err(CsvError::Header { .. })));
        let short = CsvError::Fields {
            line: 3,
            found: 1,
            expected: 2,
        };
        assert_eq!(rows("a,b\n1,2\n1\n", "a,b"), Err(short));
    }
}
