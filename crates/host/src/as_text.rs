//! Types that serde writes and reads as people do.

/// The conversions that `#[serde(into = "String", try_from = "String")]` asks for.
macro_rules! as_text {
    ($($name:ty),*) => {$(
        impl From<$name> for String {
            fn from(name: $name) -> Self {
                name.to_string()
            }
        }
        impl TryFrom<String> for $name {
            type Error = <$name as std::str::FromStr>::Err;
            fn try_from(text: String) -> Result<Self, Self::Error> {
                text.parse()
            }
        }
    )*};
}

pub(crate) use as_text;
