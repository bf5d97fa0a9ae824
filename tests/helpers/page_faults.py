"""What is wrong with how a page looks, as a browser finds it out."""

NAMELESS = """() => [...document.querySelectorAll("input, select, textarea, button, a[href], [role=group], svg")]
  .filter((one) => one.checkVisibility() && one.type !== "hidden")
  .filter((one) => !(one.getAttribute("aria-label") || one.getAttribute("aria-labelledby") || one.title ||
    (one.labels && [...one.labels].some((label) => label.textContent.trim())) ||
    (["BUTTON", "A", "a"].includes(one.tagName) && one.textContent.trim())))
  .map((one) => one.outerHTML.slice(0, 120))"""
OVERFLOW = "() => document.documentElement.scrollWidth - document.documentElement.clientWidth"
CUT = """() => [...document.querySelectorAll("svg.drawn text")]
  .filter((one) => one.checkVisibility())
  .map((one) => [one.getBoundingClientRect(), (one.parentElement.matches("g.box") && one.matches(".name") ?
    one.parentElement.querySelector("rect") : one.ownerSVGElement).getBoundingClientRect(), one.textContent])
  .filter(([text, around]) => text.left < around.left - 1.5 || text.right > around.right + 1.5)
  .map(([text, around, said]) => [said, text.left - around.left, around.right - text.right])"""
CONTRAST = """() => {
  const canvas = document.createElement("canvas").getContext("2d", { willReadFrequently: true });
  const light = (colour) => {
    canvas.fillStyle = colour; canvas.fillRect(0, 0, 1, 1);
    const parts = [...canvas.getImageData(0, 0, 1, 1).data].slice(0, 3).map((v) => v / 255)
      .map((v) => (v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4));
    return 0.2126 * parts[0] + 0.7152 * parts[1] + 0.0722 * parts[2];
  };
  const body = light(getComputedStyle(document.body).backgroundColor);
  return [...document.querySelectorAll("main p, main h1, main h2, main td, main dd, main dt")]
    .filter((one) => one.checkVisibility() && one.textContent.trim() && !one.closest(".settings, .alert, .against"))
    .map((one) => [light(getComputedStyle(one).color), one.textContent.trim().slice(0, 40)])
    .map(([ink, text]) => [(Math.max(ink, body) + 0.05) / (Math.min(ink, body) + 0.05), text])
    .filter(([contrast]) => contrast < 4.5);
}"""


FAULTS = f"() => ({{ sticks_out: Math.max(({OVERFLOW})(), 0), cut_off: ({CUT})() }})"
MORE_FAULTS = f"() => ({{ ...({FAULTS})(), nameless: ({NAMELESS})(), hard_to_read: ({CONTRAST})() }})"


def decent(page, faults=MORE_FAULTS):
    """Nothing sticks out or is cut off, everything that can be used has a name, and text can be read."""
    page.wait_for_load_state("load")  # words are there before the style sheet is
    found = {fault: where for fault, where in page.evaluate(faults).items() if where}
    assert not found, (page.url, page.viewport_size, found)
