"""What shells complete of `frazil`, by the lines of docs/howto/cli.md: each is asked itself."""

import os
import pty
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

from absent import skip_without
from ci_share import only_in_check

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "howto" / "cli.md").read_text()
LINES = {
    shell: line.replace("'\\''", "'")
    for line, shell in re.findall(r"echo '(.*_FRAZIL_COMPLETE=(\w+)_source.*)' >", PAGE)
}
"""What the page has in the files of each shell."""
CASES = {"rena": ["rename"], "catalog re": ["remove"], "tables --w": ["--wide"]}


def in_bash(home, words):
    script = (
        f"{LINES['bash']}\n"
        f"COMP_WORDS=(frazil {words}); COMP_CWORD={len(words.split())}\n"
        '_frazil_completion frazil; echo "${COMPREPLY[@]}"'
    )
    return told(home, ["bash", "-c", script]).split()


def in_fish(home, words):
    """Fish loads completions of a command from a file of its name, and can be asked for them."""
    file = home / ".config" / "fish" / "completions" / "frazil.fish"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(LINES["fish"])
    asked = told(home, ["fish", "-c", f"complete --do-complete='frazil {words}'"])
    return [line.split("\t")[0] for line in asked.splitlines()]


def in_zsh(home, words):
    """Zsh completes where somebody types alone: a tab, and a key that tells what the line is."""
    (home / ".zshrc").write_text(
        f"{LINES['zsh']}\n"
        f"tell() {{ print -r -- $BUFFER > {home}/told.new && mv {home}/told.new {home}/told }}\n"
        "zle -N tell; bindkey '^X' tell; : > $HOME/ready\n"
    )
    leader, follower = pty.openpty()
    shell = subprocess.Popen(
        ["zsh", "-i"], stdin=follower, stdout=follower, stderr=follower, env=environment(home)
    )
    os.close(follower)
    try:
        wait_for(home / "ready")
        os.write(leader, f"frazil {words}\t\x18".encode())
        wait_for(home / "told")
        line = (home / "told").read_text()
    finally:
        shell.kill()
        shell.wait()
        os.close(leader)
    # It completes the last word, as far as there is one way to go on.
    return line.split()[len(words.split()) :]


def wait_for(file):
    for _ in range(600):
        if file.exists():
            return
        time.sleep(0.05)
    raise AssertionError(f"{file.name} did not come in half a minute")


def environment(home):
    """A home of nobody else, and a path with `frazil`."""
    program = home / "frazil"
    program.write_text(f"#!{sys.executable}\nfrom frazil.cli import main\nmain()\n")
    program.chmod(0o755)
    kept = {"HOME": str(home), "PATH": f"{home}:{os.environ['PATH']}", "TERM": "xterm"}
    return {**kept, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}


def told(home, words):
    ran = subprocess.run(words, capture_output=True, text=True, env=environment(home))
    assert ran.returncode == 0, ran.stderr
    assert ran.stderr == ""
    return ran.stdout


SHELLS = {"bash": in_bash, "fish": in_fish, "zsh": in_zsh}


@pytest.mark.parametrize("shell", ["bash", only_in_check("fish"), only_in_check("zsh")])
def test_a_shell_completes_commands_and_options(tmp_path, shell):
    if shutil.which(shell) is None:
        skip_without(f"{shell} is not on this machine")
    for number, (words, expected) in enumerate(CASES.items()):
        home = tmp_path / str(number)
        home.mkdir()
        assert SHELLS[shell](home, words) == expected, words
