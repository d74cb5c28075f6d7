// What Sphinx's own scripts define, for the type check of static/search.js.
declare const Search: any;
declare const Stemmer: any;
declare function splitQuery(query: string): string[];
declare const stopwords: Set<string>;
