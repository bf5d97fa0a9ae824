"""From data to answers: what each variable looks like, and what every allowed action would bring."""
