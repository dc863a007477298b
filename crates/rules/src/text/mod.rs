//! Rules as text: one a line.

mod conditions;
mod lex;
mod names;
mod sets;
mod statement;
mod values;

use std::fmt;

use crate::{RuleSet, Verdict};
use lex::Line;
use sets::Sets;

/// What is wrong with a rule file, and how it is mended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// The file.
    pub file: String,
    /// From 1.
    pub line: u32,
    /// From 1, in characters.
    pub column: u32,
    /// In one sentence.
    pub what: String,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            file,
            line,
            column,
            what,
        } = self;
        write!(f, "{file}:{line}:{column}: {what}")
    }
}

/// Files may include each other so deep.
const DEPTH_MAX: usize = 16;
/// Files of one set, each as often as it is included: two that include each other twice would be 2^16.
const FILES_MAX: usize = 1024;
/// Rules of one set: each is a bit in every table.
pub const RULES_MAX: usize = 16_384;
/// Rules that limit a rate: each packet may have to pass all of them.
pub const LIMITS_MAX: usize = 16;
/// Packets a second, and those of a burst: one a nanosecond, the clock's unit.
pub const RATE_MAX: u64 = 1_000_000_000;
/// Problems that are told at once.
const PROBLEMS_MAX: usize = 20;

/// What a word or a line says, and where it is wrong: a column from 1.
type Told<T> = Result<T, (u32, String)>;

/// Reads the rules of a file, and of those that it includes. `read` gets a file's text by its name, which is taken
/// relative to the file that names it.
///
/// # Errors
///
/// Everything that is wrong, up to a limit, in order.
pub fn parse(file: &str, read: &dyn Fn(&str) -> Result<String, String>) -> Result<RuleSet, Vec<Problem>> {
    let mut reader = Reader {
        read,
        sets: Sets::default(),
        into: RuleSet {
            files: Vec::new(),
            rules: Vec::new(),
            default: Verdict::Allow,
        },
        default_at: None,
        problems: Vec::new(),
    };
    match read(file) {
        Ok(text) => reader.file(file, &text, 0),
        Err(why) => reader.problems.push(Problem {
            file: file.into(),
            line: 1,
            column: 1,
            what: why,
        }),
    }
    let limits = reader
        .into
        .rules
        .iter()
        .filter(|rule| matches!(rule.action, crate::Action::Limit(_)));
    let beyond = limits.clone().nth(LIMITS_MAX);
    if let Some(rule) = beyond.filter(|_| reader.problems.is_empty()) {
        let what =
            format!("at most {LIMITS_MAX} rules can limit a rate; give several of them one set of addresses");
        let place = rule.place;
        reader.tell(place, 1, what);
    }
    let says_nothing = reader.into.rules.is_empty() && reader.default_at.is_none();
    if reader.problems.is_empty() && says_nothing {
        // As an editor leaves it for a moment, which would let everything in.
        let what = "there is no rule and no default; to let everything pass say: default allow";
        reader.tell((0, 1), 1, what.into());
    }
    if reader.problems.is_empty() {
        Ok(reader.into)
    } else {
        Err(reader.problems)
    }
}

/// What has been read so far.
struct Reader<'r> {
    read: &'r dyn Fn(&str) -> Result<String, String>,
    sets: Sets,
    into: RuleSet,
    default_at: Option<(usize, u32)>,
    problems: Vec<Problem>,
}

impl Reader<'_> {
    fn tell(&mut self, (file, line): (usize, u32), column: u32, what: String) {
        if self.problems.len() < PROBLEMS_MAX {
            let file = self.into.files[file].clone();
            self.problems.push(Problem {
                file,
                line,
                column,
                what,
            });
        }
    }

    fn file(&mut self, name: &str, text: &str, depth: usize) {
        let number = self.into.files.len();
        self.into.files.push(name.into());
        for line in lex::lines(text) {
            let at = (number, line.number);
            match line.words {
                Ok(ref words) if words.is_empty() => {}
                Ok(ref words) => {
                    let stated = self.statement(&line, at, depth);
                    if let Err((column, what)) = stated {
                        self.tell_of(words, at, (column, what));
                    }
                }
                Err((column, what)) => self.tell(at, column, what),
            }
        }
    }

    /// What is wrong with a line of these words, but for what another line has told.
    fn tell_of(&mut self, words: &[lex::Word<'_>], at: (usize, u32), (column, what): (u32, String)) {
        if let [first, name, ..] = words {
            if first.text == "define" {
                self.sets.is_wrong(name.text);
            }
        }
        if !words.iter().any(|word| self.sets.has_wrong(word.text)) {
            self.tell(at, column, what);
        }
    }

    fn statement(&mut self, line: &Line<'_>, at: (usize, u32), depth: usize) -> Told<()> {
        let mut words = line.cursor()?;
        let first = words.next("a rule")?;
        match first.text {
            "include" => {
                let path = words.next("a file name")?;
                words.end()?;
                self.include(at, (path.column, path.text), depth)
            }
            "define" => {
                let name = words.next("a name")?;
                names::check(name)?;
                words.take("=")?;
                let set = if words.peek() == Some("file") {
                    words.take("file")?;
                    let path = words.next("a file name")?;
                    words.end()?;
                    let found = self.open(at.0, path.text).map_err(|why| (path.column, why))?;
                    sets::Set::of_file(found.0, &found.1)
                } else {
                    let list = words.list("a value")?;
                    words.end()?;
                    sets::Set::of_words(list.iter().map(|word| (*word).to_string()))
                };
                self.sets
                    .define(name.text, set)
                    .map_err(|what| (name.column, what))
            }
            "default" => {
                let verdict = words.next("allow or deny")?;
                words.end()?;
                if let Some((_, line)) = self.default_at {
                    return Err((
                        first.column,
                        format!("`default` stands in line {line} already; keep one of them"),
                    ));
                }
                self.default_at = Some(at);
                self.into.default = statement::verdict(verdict)?;
                Ok(())
            }
            _ => {
                let (action, when) = statement::rule(first, &mut words, &self.sets)?;
                if self.into.rules.len() == RULES_MAX {
                    let what = format!(
                        "more than {RULES_MAX} rules: put their addresses into a set (`define NAME = file \"LIST\"`, then `deny from @NAME`)"
                    );
                    return Err((1, what));
                }
                self.into.rules.push(crate::Rule {
                    place: at,
                    text: line.spelling(),
                    action,
                    when,
                });
                Ok(())
            }
        }
    }

    fn include(&mut self, at: (usize, u32), (column, path): (u32, &str), depth: usize) -> Told<()> {
        if depth == DEPTH_MAX {
            return Err((
                column,
                format!("files include each other more than {DEPTH_MAX} deep; does one include itself?"),
            ));
        }
        if self.into.files.len() == FILES_MAX {
            return Err((
                column,
                format!("more than {FILES_MAX} files are included; does one include itself?"),
            ));
        }
        let (name, text) = self.open(at.0, path).map_err(|why| (column, why))?;
        self.file(&name, &text, depth + 1);
        Ok(())
    }

    /// A file's name, relative to the one that names it, and its text.
    fn open(&self, from: usize, path: &str) -> Result<(String, String), String> {
        let beside = self.into.files[from].rsplit_once('/');
        let name = match beside {
            Some((folder, _)) if !path.starts_with('/') => format!("{folder}/{path}"),
            _ => path.to_owned(),
        };
        let text = (self.read)(&name)?;
        Ok((name, text))
    }
}
