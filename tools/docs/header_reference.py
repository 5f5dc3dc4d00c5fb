"""The reference of the C and C++ API: declarations of the headers with the comments before them (`/** … */`)."""

import re

COMMENT = re.compile(r"/\*\*(?!<)(.*?)\*/\s*", re.DOTALL)


def cleaned(comment):
    """The text of a comment without its stars."""
    lines = [re.sub(r"^\s*\*? ?", "", line) for line in comment.splitlines()]
    return "\n".join(lines).strip()


def closing(text, start):
    """The place behind the brace that closes the one at `start`."""
    depth = 0
    for place in range(start, len(text)):
        depth += {"{": 1, "}": -1}.get(text[place], 0)
        if depth == 0:
            return place + 1
    return len(text)


def declaration(text):
    """Up to its semicolon; a struct or an enum with its body, a function or a class without."""
    if text.startswith("#define"):
        return text.split("\n", 1)[0]
    end, brace = text.find(";"), text.find("{")
    if end == -1 or 0 <= brace < end:
        head = text[:brace].strip()
        is_record = re.match(r"(typedef\s+)?(struct|enum)\b", head) and "\n" not in head
        return text[: closing(text, brace)] if is_record else head
    values = re.match(r"\s*enum \{[^}]*\};", text[end + 1 :])  # of the type that is declared there
    return text[: end + 1] + (values[0] if values else "")


NAMES = (  # of types, of pointers to functions, of functions
    re.compile(r"(?:template <[^>]*>\s*)?(?:typedef\s+)?(?:class|struct|enum|#define)\s+(\w+)"),
    re.compile(r"typedef [^;]*?\(\*(\w+)\)"),
    re.compile(r"typedef [^;(]*?(\w+);"),
    re.compile(r"[^(]*?([A-Za-z_~][\w:]*)\s*\("),
)


def name_of(declared):
    found = next((match for pattern in NAMES if (match := pattern.match(declared))), None)
    return found[1] if found else declared.split("\n")[0].rstrip(";").split()[-1]


def entries(text):
    """(name, declaration, comment) of each documented declaration; the comment of the file has none."""
    for match in COMMENT.finditer(text):
        comment = cleaned(match[1])
        if comment.startswith("@file"):
            yield "", "", comment.split("\n", 1)[1].strip() if "\n" in comment else ""
        else:
            declared = declaration(text[match.end() :]).strip()
            yield name_of(declared), declared, comment


def page(headers):
    parts = []
    for header in headers:
        parts.append(f"## {header.name}")
        language = "c" if header.suffix == ".h" else "cpp"
        for name, declared, comment in entries(header.read_text()):
            parts.append(f"### {name}\n\n```{language}\n{declared}\n```\n\n{comment}" if name else comment)
    return "\n\n".join(parts or ["The headers are not part of this build."]) + "\n"
