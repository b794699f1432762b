"""Strings, characters and comments of Rust source, for scripts/words."""

import re

RUST_TOKEN = re.compile(
    r"""(?P<raw>b?r(?P<hash>\#*)".*?"(?P=hash))"""
    r"""|(?P<string>b?"(?:\\.|[^"\\])*")"""
    r"""|(?P<comment>//[^\n]*|/\*.*?\*/)"""
    r"""|(?P<char>b?'(?:\\(?:u\{[^}]*\}|.)|[^'\\\n])')""",
    re.DOTALL,
)
