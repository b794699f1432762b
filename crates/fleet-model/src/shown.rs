/// The part of a client's text that a message repeats.
pub fn shown(text: &str) -> String {
    const CHARACTERS_MAX: usize = 100;
    text.chars().take(CHARACTERS_MAX).collect()
}
