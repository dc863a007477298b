//! dropless
fn main() {}
