//! Kinds of frames that are counted, each under a name of its own.

/// An enum of kinds, each with the name of its counter.
macro_rules! counted {
    ($(#[$about:meta])* pub enum $kinds:ident { $($(#[$doc:meta])* $kind:ident = $name:literal,)* }) => {
        $(#[$about])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        #[repr(u8)]
        pub enum $kinds {
            $($(#[$doc])* $kind,)*
        }

        impl $kinds {
            /// How many there are.
            pub const COUNT: usize = [$($name),*].len();

            /// All of them, each at its index.
            pub const ALL: [Self; Self::COUNT] = [$(Self::$kind),*];

            /// Position in `ALL`, for tables of counters.
            #[inline]
            #[must_use]
            pub const fn index(self) -> usize {
                self as usize
            }

            /// Name of its counter.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$kind => $name,)*
                }
            }
        }
    };
}

pub(crate) use counted;
