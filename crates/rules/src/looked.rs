//! What a packet is to rules, whichever reasons they name.

use crate::{Facts, Malformed, ON_REQUEST, look};

/// What [`look`] finds, for each set of reasons that it may be asked for: rules that are asked apart may name others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Looked {
    /// Where it is asked for none.
    pub plain: Result<Facts, Malformed>,
    /// Those of [`ON_REQUEST`] that it has.
    pub on_request: u16,
}

impl Looked {
    /// Looks at a frame, as [`look`] does.
    pub fn at(frame: &[u8], len: usize) -> Self {
        match look(frame, len, ON_REQUEST) {
            Err(reason) if ON_REQUEST & reason.bit() != 0 => {
                let has = |reason: &Malformed| look(frame, len, ON_REQUEST & reason.bit()) == Err(*reason);
                let reasons = Malformed::ALL.into_iter().filter(has);
                Self {
                    plain: look(frame, len, 0),
                    on_request: reasons.fold(0, |all, reason| all | reason.bit()) & ON_REQUEST,
                }
            }
            found => found.into(),
        }
    }

    /// What [`look`] finds where it is asked for these.
    pub fn asked(&self, reasons: u16) -> Result<Facts, Malformed> {
        let asked = self.on_request & reasons;
        let first = Malformed::ALL
            .into_iter()
            .find(|reason| asked & reason.bit() != 0);
        first.map_or(self.plain, Err)
    }
}

/// The same whatever is asked.
impl From<Result<Facts, Malformed>> for Looked {
    fn from(plain: Result<Facts, Malformed>) -> Self {
        Self { plain, on_request: 0 }
    }
}
