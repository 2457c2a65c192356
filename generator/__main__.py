"""``python -m generator`` is ``msgen``, also where gettext's ``msgen`` comes first."""

from generator.cli import main

if __name__ == "__main__":
    main()
