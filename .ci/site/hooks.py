"""Fits the repository's Markdown to MkDocs, which reads another dialect than GitHub."""

import os
import re

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
SOURCE = "https://github.com/joinery-sdk/joinery/blob/main/"


def on_config(config):
    """A folder in nav is all of its pages, the one of the folder itself first."""

    def expanded(entry):
        if isinstance(entry, list):
            return [expanded(e) for e in entry]
        if isinstance(entry, dict):
            return {title: expanded(e) for title, e in entry.items()}
        if not entry.endswith("/"):
            return entry
        pages = []
        for folder, folders, files in os.walk(os.path.join(config["docs_dir"], entry)):
            folders.sort()
            pages += [os.path.relpath(os.path.join(folder, f), config["docs_dir"]) for f in files if f.endswith(".md")]
        return sorted(pages, key=lambda p: (os.path.basename(p) != "README.md", p))

    config["nav"] = expanded(config["nav"])
    return config


def on_page_markdown(markdown, page, config, files):
    fenced = False
    out = []
    indent = 0  # of what belongs to the list item
    for line in markdown.split("\n"):
        if line.lstrip().startswith("```"):
            fenced = not fenced
        if not fenced:
            line = linked(line, page, files)
        # An item's further paragraphs are indented as far as its text, here by four columns.
        item = re.match(r"(\d+\. |- )\S", line)
        if item and not fenced:
            indent = len(item.group(1))
            if out and out[-1] and not re.match(r"(\d+\. |- | )", out[-1]):
                out.append("")  # a list needs a blank line before it
        elif line and not line.startswith(" " * max(indent, 1)):
            indent = 0
        elif line and 0 < indent < 4:
            line = " " * (4 - indent) + line
        out.append(line)
    return "\n".join(out)


def linked(line, page, files):
    """A link to a file of the repository that is no page leads to its source; one to nothing stays, and fails the build."""

    def target(m):
        path, anchor = m.group(1), m.group(2) or ""
        if "://" in path or not path:
            return m.group(0)
        full = os.path.normpath(os.path.join(os.path.dirname(page.file.src_uri), path))
        if files.get_file_from_path(full) or not os.path.exists(os.path.join(ROOT, full)):
            return m.group(0)
        if files.get_file_from_path(full + "/README.md"):
            return "](" + path.rstrip("/") + "/README.md" + anchor + ")"
        return "](" + SOURCE + full + anchor + ")"

    return re.sub(r"\]\(([^)\s#]*)(#[^)\s]*)?\)", target, line)
