/*
 * page_dom.js - runs the script of a page without a browser: node page_dom.js PAGE prints the elements that it makes, as HTML.
 *
 * The few parts of a document that pages of Espalier use: elements with attributes and children, text nodes, the elements of the file by their id.
 */
"use strict";
const fs = require("fs");

const escaped = (text) => String(text).replace(/&/g, "&amp;").replace(/</g, "&lt;").replace(/>/g, "&gt;");

class Element {
	constructor(tag)
	{
		this.tag = tag;
		this.attributes = [];
		this.children = [];
	}

	setAttribute(name, value)
	{
		if (value === undefined || value === null || /NaN|Infinity|undefined/.test(value))
			throw new Error(`<${this.tag} ${name}="${value}">`);
		this.attributes.push([name, value]);
	}

	append(...children)
	{
		for (const child of children) {
			if (!(child instanceof Element) && typeof child !== "string")
				throw new Error(`<${this.tag}> gets ${child}`);
			this.children.push(child);
		}
	}

	toString()
	{
		const open = [this.tag, ...this.attributes.map(([name, value]) => `${name}="${escaped(value).replace(/"/g, "&quot;")}"`)].join(" ");
		const inside = this.children.map((child) => (child instanceof Element ? child.toString() : escaped(child))).join("");

		return inside === "" ? `<${open}/>` : `<${open}>${inside}</${this.tag}>`;
	}
}

const page = fs.readFileSync(process.argv[2], "utf8");
const report = new Element("main");
const found = {
	document: {textContent: page.match(/<script type="application\/json" id="document">([^]*?)<\/script>/)[1]},
	report,
};
const document = {
	title: "",
	createElement: (tag) => new Element(tag),
	createElementNS: (space, tag) => new Element(tag),
	getElementById: (id) => found[id],
};

new Function("document", page.match(/<script>([^]*?)<\/script>/)[1])(document);
const text = `<title>${escaped(document.title)}</title>${report}\n`;
if (/NaN|Infinity|undefined|\[object/.test(text))
	throw new Error("a value that is none stands in the page");
process.stdout.write(text);
