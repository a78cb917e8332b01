"""`python -m stepscope` and the command `stepscope`: the command line."""


def main() -> None:
    """Run the command line; Ctrl-C while it is imported ends it as later."""
    try:
        from stepscope.cli import main as run  # noqa: PLC0415

        run()
    except KeyboardInterrupt:
        raise SystemExit(130) from None


if __name__ == "__main__":
    main()
