"""The code of docs/c_api.md as programs: `guide.py LANGUAGE` prints the blocks of a language as one, `--output` what it must print."""
import pathlib
import re
import sys

GUIDE = pathlib.Path(__file__).resolve().parents[2] / "docs/c_api.md"


def blocks(language: str) -> tuple[list[str], list[str]]:
    """The code of a language, and the text blocks that follow it."""
    code, texts, last = [], [], ""
    for kind, body in re.findall(r"^```(\w+)\n(.*?)^```$", GUIDE.read_text(), re.MULTILINE | re.DOTALL):
        if kind == language:
            code.append(body)
        elif kind == "text" and last == language:
            texts.append(body)
        last = kind if kind != "text" else last
    return code, texts


def program(code: list[str]) -> str:
    lines = "".join(code).splitlines()
    includes = [line for line in lines if line.startswith("#include")]
    body = [line for line in lines if not line.startswith("#include")]
    return "\n".join([*includes, "int main(void) {", *body, "return 0;", "}", ""])


def main() -> None:
    code, texts = blocks(sys.argv[1])
    print("".join(texts) if "--output" in sys.argv else program(code), end="")


if __name__ == "__main__":
    main()
