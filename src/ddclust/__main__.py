"""``python -m ddclust`` is the command line."""

from ddclust.cli.main import main

if __name__ == "__main__":
    main(prog_name="ddclust")
