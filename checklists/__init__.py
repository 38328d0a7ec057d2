"""What the reader sees: checklist, reports, exports, viewer. Nothing here measures or sends a request."""
