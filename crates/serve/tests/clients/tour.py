"""The tour of docs/tour.md, walked on the real page over the sample graph and a table of one's own.

With TOUR=FOLDER its pictures are kept there: `TOUR=docs/pictures .ci/serve` makes those of the page.
"""

import os
import re
from pathlib import Path

from playwright.sync_api import expect, sync_playwright

PLANTS = "name,height,bed,light\nMint,45,North Bed,shade\nSage,60,South Bed,sun\nThyme,20,South Bed,sun\nBasil,30,North Bed,sun\n"


def check(binary, served, chromium, folder):
    shots = Path(os.environ.get("TOUR", folder / "tour"))
    shots.mkdir(parents=True, exist_ok=True)
    loads = folder / "tour-loads"
    loads.mkdir()
    with served(binary, "--graph", "@world", "--loads", str(loads)) as address, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        context = browser.new_context(viewport={"width": 1000, "height": 860}, color_scheme="light", reduced_motion="reduce")
        page = context.new_page()
        page.set_default_timeout(60_000)

        def ask(question, field="#question"):
            page.fill(field, question)
            page.press(field, "Enter")
            page.wait_for_selector("#answers li:visible, #answer-view tbody tr:visible, #refusal:not([hidden])")
            page.wait_for_timeout(600)  # the drawing comes to rest

        def keep(name, **what):
            page.screenshot(path=shots / f"tour-{name}.png", **what)

        page.goto(address)
        page.wait_for_selector("#examples button")
        ask("Which countries border both France and Germany?")
        expect(page.locator("#answers li")).to_have_count(3)
        expect(page.locator("#answers")).to_contain_text("Luxembourg")
        expect(page.locator("#words .word").first).to_be_visible()
        keep("answer", full_page=True)

        ask("What is the population of each country of Oceania?")
        expect(page.locator("#answer-view tbody tr").first).to_be_visible()
        keep("table")

        ask("Which haunted countries border Peru?")
        expect(page.locator("#refusal")).to_contain_text("haunted")
        keep("refusal")

        ask("What is the capital of Kenya?")
        expect(page.locator("#answers")).to_contain_text("Nairobi")
        ask("And its population?", "#follow-question")
        expect(page.locator("#carried")).to_contain_text("Nairobi")
        keep("follow")

        page.click("#tab-query")
        expect(page.locator("#query textarea")).to_have_value(re.compile("SELECT"))
        page.click("#query .run")
        expect(page.locator("#query tbody tr").first).to_be_visible()
        page.locator("#query").scroll_into_view_if_needed()
        keep("query")

        page.goto(f"{address}/?schema=&graph=world")
        expect(page.locator(".things li").first).to_be_visible()
        keep("schema")

        table = folder / "plants.csv"
        table.write_text(PLANTS)
        page.goto(address)
        page.click("#load summary")
        page.set_input_files("#load-choose", table)
        page.check("#load-file input[value=thing]")
        keep("load")
        page.click("#load-file button >> text=Load")
        expect(page.locator("#graph")).to_have_value("plants")
        ask("Which plants are taller than 40?")
        expect(page.locator("#answers")).to_contain_text("Sage")
        keep("own", full_page=True)
        browser.close()
