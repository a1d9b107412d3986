"""``make screenshots``: pages as a reader sees them, for looking at and for README. Needs Chromium.

Pages are rendered by cmark-gfm, as GitHub does it, under a plain style sheet, and photographed at two widths. The page
in the browser is photographed as a service over a sample archive serves it.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from urllib.parse import quote

import cmarkgfm
from cmarkgfm.cmark import Options

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
from tests.conftest import unpack
from tests.support.processes.daemon_process import Daemon
from tests.web.browser import Browser, chromium

CHECKOUT = Path(__file__).resolve().parent.parent
SAMPLE = CHECKOUT / "examples" / "pages" / "home" / "dev" / "code" / "todo-api"
IMAGES = CHECKOUT / "docs" / "images"
OF_README = {"front": "README.md", "session": "sessions/2026-11-21-settings-revert-story-renamed.md"}
FOLDER = "/home/dev/code/todo-api"
VIEWS = {
    "web-search": "/?q=" + quote("why is the store a file"),
    "web-file": f"/file?path={quote(FOLDER)}/app.py",
    "web-folder": f"/folder?path={quote(FOLDER)}",
}
WIDTHS = {"wide": 1100, "narrow": 420}
HEIGHT = 1300
_OPTIONS = Options.CMARK_OPT_FOOTNOTES | Options.CMARK_OPT_UNSAFE  # our own <details> is HTML
_STYLE = """
body { font: 16px/1.5 "DejaVu Sans", sans-serif; color: #1f2328; max-width: 960px; margin: 24px auto; padding: 0 20px }
a { color: #0969da; text-decoration: none } code, pre { font: 13px/1.45 "DejaVu Sans Mono", monospace }
code { background: #eff1f3; padding: 2px 5px; border-radius: 5px; overflow-wrap: anywhere }
pre { background: #f6f8fa; padding: 12px; overflow: auto; border-radius: 6px } pre code { background: none; padding: 0 }
table { border-collapse: collapse; display: block; overflow: auto }
td, th { border: 1px solid #d1d9e0; padding: 5px 11px }
blockquote { color: #59636e; border-left: 4px solid #d1d9e0; margin: 0; padding: 0 14px }
h1, h2 { border-bottom: 1px solid #d1d9e0; padding-bottom: 5px } h6 { color: #59636e; font-size: 13px }
.footnotes { font-size: 13px; color: #59636e; border-top: 1px solid #d1d9e0; margin-top: 24px }
details { margin: 8px 0 }
"""


def html(markdown: str, title: str) -> str:
    """The page as one HTML document; a whole one declares its encoding."""
    body = cmarkgfm.github_flavored_markdown_to_html(markdown, options=_OPTIONS)
    head = f'<meta charset="utf-8"><title>{title}</title><style>{_STYLE}</style>'
    return f"<!doctype html><html><head>{head}</head><body>{body}</body></html>"


def photograph(page: Path, image: Path, width: int, height: int = HEIGHT) -> None:
    """Write `image`, the top of `page` as a browser of this width shows it.

    Raises:
        CalledProcessError: Chromium failed; FileNotFoundError: it is not installed.
    """
    program = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if program is None:
        raise FileNotFoundError("chromium: not found; install it (Debian: apt install chromium)")
    with tempfile.TemporaryDirectory() as work:
        document = Path(work) / "page.html"
        document.write_text(html(page.read_text(), page.name))
        flags = [
            "--headless=new",
            "--no-sandbox",
            "--disable-gpu",
            "--hide-scrollbars",
            f"--user-data-dir={work}/profile",
        ]
        # Chromium lays out no window under 500 pixels wide: a narrow page is shown in a frame of its width.
        if width < 500:
            frame = Path(work) / "frame.html"
            frame.write_text(f'<iframe src="page.html" style="border:0;width:{width}px;height:{height}px"></iframe>')
            document = frame
        command = [
            program,
            *flags,
            f"--screenshot={image}",
            f"--window-size={max(width, 500)},{height}",
            document.as_uri(),
        ]
        subprocess.run(command, check=True, capture_output=True, timeout=120)


def photograph_views(images: Path) -> None:
    """Write an image of each view of the page in the browser."""
    with tempfile.TemporaryDirectory(prefix="rc-") as work:
        sample = unpack("sqlite", Path(work) / "sample")
        with Daemon(sample.data_dir, Path(work) / "ours", tables={"web": {"port": 0}}) as daemon:
            daemon.start(fork=False)
            daemon.wait_until_ready()
            daemon.wait_until_drained()
            asked = daemon.command("web", "--print")
            link = subprocess.run(
                asked, env=daemon.environment, cwd=CHECKOUT, check=True, capture_output=True, text=True
            ).stdout.strip()
            with chromium(Path(work) / "profile") as driver:
                driver.get(link)
                browser = Browser(driver, link.partition("/enter")[0])
                browser.resize(1100, 900)
                for name, view in VIEWS.items():
                    browser.open(view)
                    browser.find("main h1")
                    driver.save_screenshot(str(images / f"{name}.png"))


def main() -> int:
    """Photograph the pages of README; or those named, in the tree ``--root DIR``, at both widths into ./screenshots."""
    arguments = sys.argv[1:]
    if arguments[:1] != ["--root"]:
        IMAGES.mkdir(parents=True, exist_ok=True)
        for name, page in OF_README.items():
            photograph(SAMPLE / page, IMAGES / f"{name}.png", 900, 1000)
        photograph_views(IMAGES)
        return 0
    target = Path("screenshots").resolve()
    target.mkdir(exist_ok=True)
    for name in arguments[2:]:
        for kind, width in WIDTHS.items():
            image = target / f"{name.removesuffix('.md').replace('/', '-')}-{kind}.png"
            photograph(Path(arguments[1]) / name, image, width)
            print(image)
    return 0


if __name__ == "__main__":
    sys.exit(main())
