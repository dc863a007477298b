//! No file of `host` or `doctor` is part of a circle of imports: what lies below can be read without what lies above.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

type Module = Vec<String>;

/// A module's file: the paths it names, and the names that its `use`s give to paths.
#[derive(Default)]
struct Source {
    paths: Vec<Vec<String>>,
    names: BTreeMap<String, Vec<String>>,
}

#[derive(Default)]
struct Crate(BTreeMap<Module, Source>);

impl Crate {
    fn read(root: &Path) -> Self {
        let mut all = Self::default();
        let mut folders: Vec<PathBuf> = vec![root.to_owned()];
        while let Some(folder) = folders.pop() {
            for entry in fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
                let place = entry.strip_prefix(root).unwrap().with_extension("");
                let mut module: Module = place
                    .iter()
                    .map(|part| part.to_str().unwrap().to_owned())
                    .collect();
                match module.last().map(String::as_str) {
                    _ if entry.is_dir() => folders.push(entry),
                    Some("tests") => {}
                    last => {
                        if matches!(last, Some("mod" | "lib")) {
                            module.pop();
                        }
                        all.0
                            .insert(module, Source::parse(&fs::read_to_string(entry).unwrap()));
                    }
                }
            }
        }
        all
    }

    /// The module that defines what `path` means in `module`; none where another crate does.
    fn defines(&self, module: &Module, path: &[String], depth: usize) -> Option<Module> {
        let (first, rest) = path.split_first()?;
        let at = match first.as_str() {
            "crate" => Vec::new(),
            "self" => module.clone(),
            "super" => module[..module.len().checked_sub(1)?].to_vec(),
            _ => return self.named(module, path, depth).filter(|found| found != module),
        };
        self.named(&at, rest, depth)
    }

    /// The same for a path that begins in `at`: with a module of it, a name that it uses, or an item of its own.
    fn named(&self, at: &Module, path: &[String], depth: usize) -> Option<Module> {
        let Some((first, rest)) = path.split_first().filter(|_| depth < 20) else {
            return Some(at.clone());
        };
        if first == "super" {
            return self.defines(at, path, depth + 1);
        }
        let mut child = at.clone();
        child.push(first.clone());
        if self.0.contains_key(&child) {
            return self.named(&child, rest, depth + 1);
        }
        match self.0[at].names.get(first) {
            Some(used) if used.as_slice() != path => self.defines(at, &[used, rest].concat(), depth + 1),
            _ => Some(at.clone()),
        }
    }

    fn imports(&self, module: &Module) -> BTreeSet<Module> {
        let named = self.0[module].paths.iter();
        let all = named.filter_map(|path| self.defines(module, path, 0));
        all.filter(|other| other != module && self.0.contains_key(other))
            .collect()
    }

    /// The modules that import themselves by way of others.
    fn circles(&self) -> Vec<String> {
        let direct: BTreeMap<_, _> = self
            .0
            .keys()
            .map(|module| (module, self.imports(module)))
            .collect();
        let reaches_itself = |module: &&Module| {
            let (mut seen, mut open) = (BTreeSet::new(), direct[*module].clone());
            while let Some(next) = open.pop_first() {
                open.extend(direct[&next].iter().filter(|far| !seen.contains(*far)).cloned());
                seen.insert(next);
            }
            seen.contains(*module)
        };
        let found = self.0.keys().filter(reaches_itself);
        found.map(|module| module.join("::")).collect()
    }
}

impl Source {
    /// Enough of the language: comments and texts go, unit tests are the end.
    fn parse(text: &str) -> Self {
        let mut code = String::new();
        let is_end = |line: &str, next: &str| line == "#[cfg(test)]" && next.ends_with("mod tests {");
        let pairs = text.lines().zip(text.lines().skip(1).chain([""]));
        for (line, _) in pairs.take_while(|(line, next)| !is_end(line, next)) {
            let texts = line.split("//").next().unwrap_or_default().split('"');
            code.extend(texts.step_by(2).chain(["\n"]));
        }
        for mark in ["::", "{", "}", ",", ";"] {
            code = code.replace(mark, &format!(" {mark} "));
        }
        let split = |c: char| !(c.is_alphanumeric() || "_:{},;".contains(c));
        let words: Vec<&str> = code.split(split).filter(|word| !word.is_empty()).collect();
        let mut source = Self::default();
        let mut at = 0;
        while at < words.len() {
            let (is_use, begin) = (words[at] == "use", at + usize::from(words[at] == "use"));
            at = if is_use || words.get(at + 1) == Some(&"::") {
                source.tree(&words, begin, &[], is_use)
            } else {
                at + 1
            };
        }
        source
    }

    /// Reads `a::b`, `a::{b, c as d}`; says where it ends.
    fn tree(&mut self, words: &[&str], mut at: usize, above: &[String], is_use: bool) -> usize {
        let mut path = above.to_vec();
        while let Some(word) = words.get(at) {
            at += 1;
            if *word == "{" && is_use {
                while !matches!(words.get(at), None | Some(&"}")) {
                    at = self.tree(words, at, &path, true);
                    at += usize::from(words.get(at) == Some(&","));
                }
                return at + 1;
            }
            path.push((*word).to_owned());
            if words.get(at) != Some(&"::") {
                break;
            }
            at += 1;
        }
        if path.len() > 1 && path.last().is_some_and(|last| last == "self") {
            path.pop();
        }
        let mut name = path.last().cloned().unwrap_or_default();
        if is_use && words.get(at) == Some(&"as") {
            words[at + 1].clone_into(&mut name);
            at += 2;
        }
        if is_use {
            self.names.insert(name, path.clone());
        }
        self.paths.push(path);
        at
    }
}

#[test]
fn no_module_imports_itself_by_way_of_others() {
    for name in ["doctor", "host"] {
        let root = Path::new(env!("CARGO_MANIFEST_DIR"))
            .join("..")
            .join(name)
            .join("src");
        let found = Crate::read(&root).circles();
        assert!(found.is_empty(), "{name}: {}", found.join(", "));
    }
}

#[test]
fn a_circle_is_found_through_what_is_exported_again() {
    let files = [
        ("", "pub use low::Low; mod low; mod high;"),
        ("low", "use crate::high::{self, High}; struct Low;"),
        (
            "high",
            "// crate::other\nfn f() -> crate::Low { \"crate::none\" }",
        ),
        ("other", "use super::low::Low as Deep;"),
    ];
    let module = |name: &str| name.split_terminator("::").map(str::to_owned).collect();
    let sources = files.map(|(name, text)| (module(name), Source::parse(text)));
    let found = Crate(sources.into_iter().collect()).circles();
    assert_eq!(found, ["high", "low"]);
}
