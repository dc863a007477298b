//! Lines of a rule file as words.

use super::Told;

/// A word, a comma or an equals sign, and where it stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Word<'t> {
    pub(super) text: &'t str,
    /// From 1, in characters.
    pub(super) column: u32,
    /// It stood in quotes.
    pub(super) is_quoted: bool,
}

/// A line, and those that it goes on in.
#[derive(Debug)]
pub(super) struct Line<'t> {
    /// From 1.
    pub(super) number: u32,
    pub(super) words: Told<Vec<Word<'t>>>,
}

/// The lines of a text. One that ends with a comma goes on in the next.
pub(super) fn lines(text: &str) -> impl Iterator<Item = Line<'_>> {
    let mut lines = (1_u32..).zip(text.lines());
    std::iter::from_fn(move || {
        let (number, line) = lines.next()?;
        let mut words = words(line);
        while words.as_ref().is_ok_and(|words| {
            words
                .last()
                .is_some_and(|word| word.text == "," && !word.is_quoted)
        }) {
            let Some((_, more)) = lines.next() else { break };
            words = words.and_then(|mut all| {
                all.extend(self::words(more)?);
                Ok(all)
            });
        }
        Some(Line { number, words })
    })
}

fn words(line: &str) -> Told<Vec<Word<'_>>> {
    let mut words = Vec::new();
    let mut at = 0;
    // Characters so far, and up to where: lines may be long.
    let mut counted = (0, 0);
    let mut column = |at: usize| {
        counted = (counted.0 + line[counted.1..at].chars().count() as u32, at);
        counted.0 + 1
    };
    while let Some(first) = line[at..].chars().next() {
        let rest = &line[at..];
        let len = match first {
            '#' => break,
            _ if first.is_whitespace() => {
                at += first.len_utf8();
                continue;
            }
            ',' | '=' => 1,
            '"' => {
                let Some(len) = rest[1..].find('"') else {
                    return Err((column(at), "this quote is not closed; end it with \"".into()));
                };
                words.push(Word {
                    text: &rest[1..=len],
                    column: column(at),
                    is_quoted: true,
                });
                at += len + 2;
                continue;
            }
            _ => rest
                .find(|c: char| c.is_whitespace() || matches!(c, ',' | '=' | '#' | '"'))
                .unwrap_or(rest.len()),
        };
        words.push(Word {
            text: &rest[..len],
            column: column(at),
            is_quoted: false,
        });
        at += len;
    }
    Ok(words)
}

impl<'t> Line<'t> {
    pub(super) fn cursor(&self) -> Told<Cursor<'_, 't>> {
        match &self.words {
            Ok(words) => Ok(Cursor { words, at: 0 }),
            Err(problem) => Err(problem.clone()),
        }
    }

    /// The line in its one spelling.
    pub(super) fn spelling(&self) -> String {
        let mut text = String::new();
        for word in self.words.iter().flatten() {
            if !text.is_empty() && word.text != "," && !text.ends_with(',') {
                text.push(' ');
            }
            text.push_str(word.text);
        }
        text
    }
}

/// Takes the words of a line one by one.
pub(super) struct Cursor<'l, 't> {
    words: &'l [Word<'t>],
    at: usize,
}

impl<'t> Cursor<'_, 't> {
    /// The next word, which must be there.
    pub(super) fn next(&mut self, wanted: &str) -> Told<Word<'t>> {
        let word = self.words.get(self.at).copied();
        self.at += 1;
        word.ok_or_else(|| (self.behind(), format!("{wanted} is missing here")))
    }

    /// The next word, if there is one.
    pub(super) fn try_next(&mut self) -> Option<Word<'t>> {
        let word = self.words.get(self.at).copied()?;
        self.at += 1;
        Some(word)
    }

    pub(super) fn peek(&self) -> Option<&'t str> {
        self.words.get(self.at).map(|word| word.text)
    }

    /// This word and no other.
    pub(super) fn take(&mut self, wanted: &str) -> Told<()> {
        let word = self.next(&format!("`{wanted}`"))?;
        if word.text == wanted {
            Ok(())
        } else {
            Err((
                word.column,
                format!("`{}` stands where `{wanted}` is wanted", word.text),
            ))
        }
    }

    /// Words with commas between them, at least one.
    pub(super) fn list(&mut self, wanted: &str) -> Told<Vec<Item<'t>>> {
        let mut list = Vec::new();
        loop {
            let word = self.next(wanted)?;
            if word.text == "," || word.text == "=" {
                return Err((
                    word.column,
                    format!("`{}` stands where {wanted} is wanted", word.text),
                ));
            }
            list.push(Item(word));
            if self.peek() != Some(",") {
                return Ok(list);
            }
            self.at += 1;
        }
    }

    /// Nothing may follow.
    pub(super) fn end(&self) -> Told<()> {
        self.words.get(self.at).map_or(Ok(()), |word| {
            Err((word.column, format!("`{}` is one word too many", word.text)))
        })
    }

    fn behind(&self) -> u32 {
        self.words
            .last()
            .map_or(1, |word| word.column + word.text.chars().count() as u32)
    }
}

/// A member of a list.
#[derive(Clone, Copy, Debug)]
pub(super) struct Item<'t>(pub(super) Word<'t>);

impl std::ops::Deref for Item<'_> {
    type Target = str;

    fn deref(&self) -> &str {
        self.0.text
    }
}
