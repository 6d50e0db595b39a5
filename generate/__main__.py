"""`make generate`: writes every file that is made from a declaration in the program."""

from generate.files import ROOT, files


def main() -> None:
    """Write what differs, and say so."""
    for name, text in files().items():
        path = ROOT / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            path.write_text(text, encoding="utf-8")
            print(f"written: {name}")  # noqa: T201  (printing is what it is for)


if __name__ == "__main__":
    main()
