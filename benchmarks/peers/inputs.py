"""The inputs: expected and observed names, each letter a tool. No package but the standard library is needed here."""

TINY = {
    "C1": ("", ""),
    "C2": ("", "a"),
    "C3": ("a", ""),
    "C4": ("abcd", "abc"),
    "C5": ("abc", "axbc"),
    "C6": ("abc", "bac"),
    "C7": ("aa", "aa"),
    "C8": ("aa", "a"),
    "C9": ("a", "aaa"),
    "C10": ("abc", "bc"),
    "C11": ("cab", "abc"),
    "C12": ("abc", "axc"),
}
"""Twelve cases on which evaluators are known to differ: (expected, observed)."""

SIZES = (10, 100, 1_000)


def long_pair(steps: int) -> tuple[list[str], list[str]]:
    """Return names of the given number of expected steps, and the same with every tenth step another one."""
    expected = [f"tool_{place % 7}" for place in range(steps)]
    observed = [f"other_{place % 3}" if place % 10 == 5 else name for place, name in enumerate(expected)]
    return expected, observed
