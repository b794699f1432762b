/// The beginning of a text, for an error message.
pub(crate) fn excerpt(text: &str) -> String {
    const CHARACTERS_MAX: usize = 100;
    text.chars().take(CHARACTERS_MAX).collect()
}
