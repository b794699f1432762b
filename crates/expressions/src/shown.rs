/// The part of a text that a message repeats.
pub(crate) fn shown(text: &str) -> String {
    const CHARACTERS_MAX: usize = 100;
    text.chars().take(CHARACTERS_MAX).collect()
}
