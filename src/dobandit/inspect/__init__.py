"""From rows to answers: what each variable looks like (`fit`), and what every allowed action would bring (`rank`)."""
