"""The sections of the page, one file each: what ``page.html`` shows in them."""
