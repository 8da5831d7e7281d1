"""The page in a real Chromium: what a person does, and what must never happen."""

import os
from pathlib import Path

from playwright.sync_api import expect, sync_playwright

BORN = "Where was the coach of the San Francisco Giants born?"


def fill_of(page, selector):
    return page.eval_on_selector(selector, "e => getComputedStyle(e).fill")


def ask(page, question):
    page.fill("#question", question)
    page.press("#question", "Escape")
    page.press("#question", "Enter")
    page.wait_for_selector("#answers li")


def check(address, chromium, folder):
    shots = Path(os.environ.get("SCREENSHOTS", folder / "shots"))
    shots.mkdir(parents=True, exist_ok=True)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        context = browser.new_context(viewport={"width": 1200, "height": 1250}, color_scheme="light")
        page = context.new_page()
        outside, faults = [], []
        page.on("request", lambda r: None if r.url.startswith((address, "data:")) else outside.append(r.url))
        page.on("pageerror", lambda error: faults.append(str(error)))
        page.on("console", lambda m: faults.append(m.text) if m.type == "error" else None)

        # an example, by a click
        page.goto(address)
        page.wait_for_selector("#examples button")
        page.screenshot(path=shots / "begin.png")
        page.click("#examples button >> nth=0")
        page.wait_for_selector("#answers li")
        expect(page.locator("#answers li").first).to_contain_text("Landes de Bussac")
        stages = page.locator("#stages li b").all_text_contents()
        assert stages == ["link", "retrieve", "select", "organize", "reason", "verify", "total"], stages
        assert page.locator(".node.topic").count() == 1
        assert fill_of(page, ".node.topic circle") == "rgb(112, 72, 232)"
        assert fill_of(page, ".node.answer circle") == "rgb(43, 138, 62)"
        labels = page.locator(".label.relation").all_text_contents()
        assert any(label.startswith("born in 0.") or label.startswith("born in 1.") for label in labels), labels
        page.screenshot(path=shots / "answer.png")

        # how it was read, and another reading, by a click
        read_as = page.locator("#read-as").text_content()
        assert read_as.startswith("Read as "), read_as
        page.click("#alternatives button >> nth=0")
        expect(page.locator("#read-as")).not_to_have_text(read_as)
        expect(page.locator("#read-as")).to_contain_text("Read as")
        page.screenshot(path=shots / "reading.png")
        ask(page, BORN)
        expect(page.locator("#read-as")).to_have_text(read_as)

        # the rationale lights up under the pointer, in the list and in the graph
        page.hover("#answers li")
        expect(page.locator(".edge.on")).to_have_count(2)
        page.screenshot(path=shots / "hover.png")
        page.hover("#evidence-title")
        expect(page.locator(".edge.on")).to_have_count(0)
        page.hover(".node.answer circle")
        expect(page.locator(".edge.on")).to_have_count(2)
        expect(page.locator("#answers li.on")).to_have_count(1)
        page.hover("#evidence-title")

        # zoom, drag, expand
        before = page.get_attribute(".node.topic circle", "cx"), page.get_attribute(".node.answer circle", "cx")
        page.hover("#network")
        page.mouse.wheel(0, -400)
        page.wait_for_timeout(200)
        after = page.get_attribute(".node.topic circle", "cx"), page.get_attribute(".node.answer circle", "cx")
        assert abs(float(after[0]) - float(after[1])) > abs(float(before[0]) - float(before[1])) * 1.2, (before, after)
        page.click("#zoom-fit")
        box = page.locator(".node.topic circle").bounding_box()
        x, y = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
        page.mouse.move(x, y)
        page.mouse.down()
        page.mouse.move(x + 40, y + 30, steps=4)
        page.mouse.up()
        moved = page.locator(".node.topic circle").bounding_box()
        assert abs(moved["x"] - box["x"] - 40) < 2, (box, moved)
        nodes = page.locator(".node").count()
        page.dblclick(".node.topic circle")
        expect(page.locator(".node").nth(nodes)).to_be_attached()
        expect(page.locator("#chosen")).to_contain_text("triples shown")
        page.screenshot(path=shots / "expanded.png")

        # the keyboard alone
        page.focus("#network")
        page.keyboard.press("ArrowRight")
        page.keyboard.press("ArrowDown")
        chosen = page.locator("#chosen b").text_content()
        assert chosen and page.evaluate("document.activeElement.classList.contains('node')")
        page.keyboard.press("Escape")
        expect(page.locator("#chosen b")).to_have_count(0)
        page.focus("#tab-network")
        page.keyboard.press("ArrowRight")
        expect(page.locator("#chains .chain").first).to_contain_text("born in")
        page.screenshot(path=shots / "chains.png")
        page.keyboard.press("ArrowRight")
        assert page.locator("#table tbody tr").count() >= 2
        page.click("#tab-network")

        # completion
        page.fill("#question", "")
        page.type("#question", "who is the mascot of the san fr")
        page.wait_for_selector("#completions li")
        page.keyboard.press("ArrowDown")
        page.screenshot(path=shots / "completion.png")
        page.keyboard.press("Enter")
        assert page.input_value("#question").startswith("who is the mascot of the San Francisco"), page.input_value("#question")

        # a permalink leads to the same answer, and back leads back
        ask(page, BORN)
        link = page.url
        assert "q=Where" in link
        other = context.new_page()
        other.goto(link)
        other.wait_for_selector("#answers li")
        expect(other.locator("#answers li").first).to_contain_text("Landes de Bussac")
        other.close()

        # a thumb is kept
        page.click("#up")
        expect(page.locator("#thanks")).to_contain_text("Saved")
        assert "Landes de Bussac" in (folder / "feedback" / "toy.jsonl").read_text()

        # no answer is said in words
        page.fill("#question", "Who wrote Hamlet?")
        page.press("#question", "Enter")
        expect(page.locator("#reason")).to_contain_text("No answer")

        # runs
        page.click("#nav-runs")
        page.click("#runs a >> text=walk")
        page.wait_for_selector("#runs .rows li")
        assert page.locator("#runs .rows li").count() == 2
        page.screenshot(path=shots / "run.png")
        page.click("#runs .rows a >> nth=0")
        expect(page.locator("#replay")).to_contain_text("Expected: Lou Seal")
        expect(page.locator("#answers li").first).to_contain_text("Lou Seal")
        page.screenshot(path=shots / "replay.png")

        # labels are text, whatever they look like
        page.goto(f"{address}/?graph=html&topic=%3Cimg+src%3Dx+onerror%3D%22window.broken%3D1%22%3E&q=drawn+by+whom%3F")
        page.wait_for_selector("#answers li")
        expect(page.locator("#answers li").first).to_contain_text("<b>Bold</b>")
        for tab in ["#tab-chains", "#tab-table", "#tab-json", "#tab-network"]:
            page.click(tab)
        page.fill("#question", "")
        page.type("#question", "<img")
        page.wait_for_timeout(400)
        assert page.evaluate("window.broken") is None
        assert page.locator("main img, #answers b").count() == 0
        page.screenshot(path=shots / "html.png")

        # the proof first, all evidence by a click; of two hundred triples labels do not cover each other, and are large enough to read
        page.goto(f"{address}/?graph=large&method=wide&q=Which+paintings+does+The+Grand+Exhibition+show%3F")
        page.wait_for_selector("#answers li")
        page.screenshot(path=shots / "large-answer.png")
        found = page.evaluate("fetch('/v1/neighbourhood?graph=large&limit=200&id=The+Grand+Exhibition').then(r => r.json())")
        assert found["total"] == 120
        shown = page.locator("#table tbody tr").count()
        assert shown == 200, shown
        page.click("#all-evidence")
        expect(page.locator("#all-evidence")).to_have_attribute("aria-pressed", "true")
        assert page.locator(".node").count() > 100
        page.hover("#evidence-title")
        page.wait_for_timeout(2500)
        boxes = page.evaluate("[...document.querySelectorAll('.label')].map(e => { const b = e.getBBox(); return [b.x, b.y, b.width, b.height, parseFloat(getComputedStyle(e).fontSize)] })")
        assert len(boxes) >= 20, len(boxes)
        assert min(box[4] for box in boxes) >= 11
        for i, a in enumerate(boxes):
            for b in boxes[i + 1:]:
                across = min(a[0] + a[2], b[0] + b[2]) - max(a[0], b[0])
                down = min(a[1] + a[3], b[1] + b[3]) - max(a[1], b[1])
                assert across < 4 or down < 4, (a, b)
        page.locator("#network").screenshot(path=shots / "large.png")

        # a question taken apart: its steps, whose facts light up
        page.goto(f"{address}/?graph=toy&method=steps&q=Who+is+the+mascot+of+the+San+Francisco+Giants%3F")
        page.wait_for_selector("#sub-questions li")
        expect(page.locator("#thought")).to_contain_text("it is one step")
        expect(page.locator("#sub-questions li")).to_have_count(1)
        expect(page.locator("#sub-questions li")).to_contain_text("Lou Seal")
        page.hover("#sub-questions li")
        assert page.locator(".edge.on").count() > 0
        page.screenshot(path=shots / "steps.png")
        page.hover("#evidence-title")

        # dark, by the system and by the button
        page.emulate_media(color_scheme="dark")
        page.goto(f"{address}/?q=Which+World+Series+did+the+San+Francisco+Giants+win%3F&graph=toy")
        page.wait_for_selector("#answers li")
        assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(21, 21, 29)"
        page.screenshot(path=shots / "dark.png")
        page.click("#theme")
        assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
        page.click("#theme")
        assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(21, 21, 29)"

        # a phone
        page.set_viewport_size({"width": 390, "height": 844})
        page.emulate_media(color_scheme="light")
        page.click("#theme")
        page.goto(f"{address}/?q=Which+World+Series+did+the+San+Francisco+Giants+win%3F&graph=toy")
        page.wait_for_selector("#answers li")
        assert page.evaluate("document.documentElement.scrollWidth") <= 390
        page.screenshot(path=shots / "phone.png", full_page=True)

        # the page to try the API
        page.set_viewport_size({"width": 1200, "height": 900})
        page.goto(f"{address}/docs")
        page.click("summary:has-text('/v1/ask') >> nth=0")
        page.click("details[open] button")
        expect(page.locator("details[open] pre")).to_contain_text("Lou Seal")
        page.screenshot(path=shots / "docs.png")

        # every control has a name
        page.goto(address)
        unnamed = page.evaluate("[...document.querySelectorAll('button, input, select')].filter(e => !e.closest('[hidden]') && !(e.ariaLabel || e.textContent.trim() || e.labels?.length)).map(e => e.id)")
        assert not unnamed, unnamed
        assert not outside, outside
        assert not faults, faults
        browser.close()
