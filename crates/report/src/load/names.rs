//! What runs are called: alone, in a list, and among others.

use super::Loaded;
use crate::utc;

impl Loaded {
    /// What people call it, where it stands alone: its label, or its folder.
    pub fn title(&self) -> &str {
        self.label.as_deref().unwrap_or(&self.folder)
    }

    /// In a line: its label, where no other run has that, or where it lies.
    pub fn in_words(&self) -> String {
        match &self.label {
            Some(label) if *label == self.name => label.clone(),
            _ => self.path.display().to_string(),
        }
    }

    /// In a list, whose other columns say what its folder's name does: its label, its folder if somebody named that, or its
    /// number.
    pub fn called(&self) -> String {
        match &self.label {
            None if utc::stamped(&self.folder).is_some() => self.name.clone(),
            _ => self.title().to_owned(),
        }
    }

    /// It is called so, where it is called anything.
    pub(super) fn take_label(&mut self, label: Option<String>) {
        if let Some(label) = &label {
            self.name.clone_from(label);
        }
        self.label = label;
    }
}

/// A label stands for a run, or its number: where it has none, or one that others have, too.
pub(super) fn tell_apart(runs: &mut [Loaded]) {
    let labels: Vec<Option<String>> = runs.iter().map(|run| run.label.clone()).collect();
    for (at, run) in runs.iter_mut().enumerate() {
        let own = labels[at]
            .as_ref()
            .filter(|own| labels.iter().flatten().filter(|label| label == own).count() == 1);
        run.name = own.cloned().unwrap_or_else(|| format!("[{}]", at + 1));
    }
}
