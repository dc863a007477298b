//! Finds the name somebody probably meant.

/// The candidate closest to `word`, if one is close enough to be a slip of the fingers.
pub fn nearest<'a>(word: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let limit = (word.chars().count() / 3).max(1);
    candidates
        .into_iter()
        .map(|candidate| (strsim::damerau_levenshtein(word, candidate), candidate))
        .filter(|(distance, _)| *distance <= limit)
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, candidate)| candidate)
}

#[cfg(test)]
mod tests {
    use super::nearest;

    #[test]
    fn a_slip_is_found_and_a_stranger_is_not() {
        assert_eq!(nearest("pic", ["pci", "pcap", "ring"]), Some("pci"));
        assert_eq!(nearest("quue", ["queues", "queue"]), Some("queue"));
        assert_eq!(nearest("elephant", ["pci", "pcap", "ring"]), None);
    }
}
