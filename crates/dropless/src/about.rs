//! Which flag an error is about, told by its type: whoever refuses a value knows, and nobody reads it out of the words.

use std::error;
use std::fmt;

use anyhow::{Error, Result};

/// An error that is about the value of one flag. It reads as the error does that it was made of.
#[derive(Debug)]
struct AboutFlag {
    /// With its dashes; `None` where it may be that of several.
    flag: Option<&'static str>,
    error: Error,
}

impl fmt::Display for AboutFlag {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.error.fmt(formatter)
    }
}

impl error::Error for AboutFlag {
    fn source(&self) -> Option<&(dyn error::Error + 'static)> {
        self.error.source()
    }
}

/// What may fail because of a flag.
pub trait About<T> {
    /// The same; an error says that it is about `flag`, whatever it was about within.
    fn about(self, flag: &'static str) -> Result<T>;

    /// The same; it is about no flag, since what was about one within may be about another out here.
    fn about_none(self) -> Result<T>;
}

impl<T, E: Into<Error>> About<T> for Result<T, E> {
    fn about(self, flag: &'static str) -> Result<T> {
        self.map_err(|error| wrapped(Some(flag), error.into()))
    }

    fn about_none(self) -> Result<T> {
        self.map_err(|error| wrapped(None, error.into()))
    }
}

fn wrapped(flag: Option<&'static str>, error: Error) -> Error {
    AboutFlag { flag, error }.into()
}

/// The flag that an error is about, with its dashes, where somebody said so.
pub fn flag(error: &Error) -> Option<&'static str> {
    error.downcast_ref::<AboutFlag>().and_then(|about| about.flag)
}

/// `ensure!` whose error is about a flag.
macro_rules! ensure_about {
    ($flag:expr, $holds:expr, $($words:tt)+) => {
        let holds: bool = $holds;
        if !holds {
            return $crate::about::About::about(Err(anyhow::anyhow!($($words)+)), $flag);
        }
    };
}
/// `bail!` whose error is about a flag.
macro_rules! bail_about {
    ($flag:expr, $($words:tt)+) => {
        return $crate::about::About::about(Err(anyhow::anyhow!($($words)+)), $flag)
    };
}
pub(crate) use {bail_about, ensure_about};

#[cfg(test)]
mod tests {
    use anyhow::{Context as _, anyhow};

    use super::*;

    #[test]
    fn an_error_tells_its_flag_and_reads_as_before() {
        let cause = || Err::<(), _>(anyhow!("cause")).context("--rate 1");
        let error = cause().about("--rate").unwrap_err();
        assert_eq!(flag(&error), Some("--rate"));
        assert_eq!(format!("{error:#}"), "--rate 1: cause");
        // What is put in front of it changes nothing, and who is outside knows better.
        let error = Err::<(), _>(error).context("a").about("--stream");
        let error = error.context("b").unwrap_err();
        assert_eq!(flag(&error), Some("--stream"));
        assert_eq!(format!("{error:#}"), "b: a: --rate 1: cause");
        assert_eq!(flag(&cause().unwrap_err()), None);
        let error = Err::<(), _>(error).about_none().unwrap_err();
        assert_eq!(flag(&error), None);
        assert_eq!(format!("{error:#}"), "b: a: --rate 1: cause");
    }
}
