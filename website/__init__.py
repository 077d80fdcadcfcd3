"""What turns docs/ into a site: navigation, links, formulas, pictures, generated pages."""
