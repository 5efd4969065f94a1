"""The report of what Chronos did: gathering.gather, texts.text_of, charts.chart_of, documents.pdf_of.

All four give the same for the same figures. Importing this package imports neither Babel nor matplotlib nor fpdf2.
"""
