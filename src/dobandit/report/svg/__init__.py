"""Pictures as SVG text for pages: no plot package, no script; colours come from the page, light, dark or print."""
