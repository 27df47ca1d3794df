//! Reads `configs/reference.toml` line by line, with its comments.

/// A section: `[name]` or `[[name]]`.
#[derive(Debug)]
pub(super) struct Section {
    pub(super) name: String,
    pub(super) is_list: bool,
    pub(super) about: String,
    pub(super) lines: Vec<Line>,
}

/// A setting.
#[derive(Debug)]
pub(super) struct Line {
    /// Index of the line in the file.
    pub(super) number: usize,
    /// The key within its section.
    pub(super) key: String,
    pub(super) value: String,
    pub(super) comment: String,
    /// Written as a comment, `# key = value`, because it replaces another setting.
    pub(super) is_alternative: bool,
}

impl Section {
    pub(super) fn full(&self, line: &Line) -> String {
        format!("{}.{}", self.name, line.key)
    }

    /// Values in this section are examples, not defaults.
    pub(super) fn has_examples(&self) -> bool {
        self.is_list || self.name == "account" || self.name == "risk"
    }
}

/// Reads all sections. A comment on its own line continues the comment before it. A key that occurs
/// again as an alternative is ignored.
pub(super) fn sections(text: &str) -> Result<Vec<Section>, String> {
    let mut sections: Vec<Section> = Vec::new();
    for (number, whole) in text.lines().enumerate() {
        let refuse = || format!("configs/reference.toml line {}: cannot be read", number + 1);
        if whole.trim().is_empty() {
            continue;
        }
        if whole.starts_with('[') {
            let (header, comment) = split_comment(whole);
            let name = header.trim_matches(['[', ']']).to_owned();
            sections.push(Section {
                name,
                is_list: header.starts_with("[["),
                about: comment.to_owned(),
                lines: Vec::new(),
            });
            continue;
        }
        // The comment at the top of the file.
        let Some(section) = sections.last_mut() else {
            continue;
        };
        let alternative = whole.strip_prefix("# ");
        if let Some((key, rest)) = alternative.unwrap_or(whole).split_once(" = ")
            && !whole.starts_with(' ')
        {
            let (value, comment) = split_comment(rest);
            let is_again = section.lines.iter().any(|line| line.key == key);
            if alternative.is_some() && is_again {
                continue;
            }
            section.lines.push(Line {
                number,
                key: key.to_owned(),
                value: value.to_owned(),
                comment: comment.to_owned(),
                is_alternative: alternative.is_some(),
            });
            continue;
        }
        let more = whole.trim().strip_prefix("# ").ok_or_else(refuse)?;
        let comment = match section.lines.last_mut() {
            Some(line) => &mut line.comment,
            None => &mut section.about,
        };
        if !comment.is_empty() {
            comment.push(' ');
        }
        comment.push_str(more);
    }
    Ok(sections)
}

/// Splits a line at the `#` outside of strings.
fn split_comment(text: &str) -> (&str, &str) {
    let mut quoted = false;
    for (at, letter) in text.char_indices() {
        match letter {
            '"' => quoted = !quoted,
            '#' if !quoted => {
                let comment = text[at..].trim_start_matches('#');
                return (text[..at].trim(), comment.trim());
            }
            _ => {}
        }
    }
    (text.trim(), "")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_continue_and_alternatives_are_marked() {
        let text =
            "# top\n[a]   # of a\n      # section\nx = \"#\"  # first\n   # second\n# y = 1\n";
        let sections = sections(text).unwrap();
        let [section] = sections.as_slice() else {
            panic!("{sections:?}");
        };
        assert_eq!(section.about, "of a section");
        let [x, y] = section.lines.as_slice() else {
            panic!("{section:?}");
        };
        assert_eq!(
            (x.value.as_str(), x.comment.as_str()),
            ("\"#\"", "first second")
        );
        assert!(y.is_alternative && y.number == 5);
    }
}
