// What in a page is made from recorded data: a list of problems. Called with the canary's element and its host.
([element, host]) => {
  const problems = [];
  const seen = new Set();
  const say = text => { if (!seen.has(text)) { seen.add(text); problems.push(text.slice(0, 300)); } };
  const addresses = ['href', 'src', 'action', 'formaction', 'xlink:href', 'srcset', 'poster', 'data', 'ping',
                     'background', 'cite', 'manifest'];
  const banned = new Set(['iframe', 'frame', 'object', 'embed', 'applet', 'base', 'math', 'foreignobject', 'animate',
                          'set', 'marquee', 'portal', 'video', 'audio', 'source', 'track']);
  const visit = root => {
    for (const node of root.querySelectorAll('*')) {
      const tag = node.localName;
      if (tag === element || banned.has(tag.toLowerCase())) say(`element <${tag}>`);
      if (tag === 'meta' && /refresh|set-cookie/i.test(node.httpEquiv)) say('meta http-equiv ' + node.httpEquiv);
      if ((tag === 'style' || tag === 'script') && /canary/i.test(node.textContent)
          && !/json/.test(node.type || '')) say(`data in <${tag}>`);
      for (const {name, value} of node.attributes) {
        if (/^on/i.test(name)) say(`handler ${name} on <${tag}>`);
        if (name === 'srcdoc') say('srcdoc');
        if (/canary|["'<>]/.test(name)) say(`attribute ${name} on <${tag}>`);
        if (name === 'style' && /canary|url\(|expression|import/i.test(value)) say(`style ${value}`);
        if (addresses.includes(name)) {
          const bare = value.replace(/[\s\x00-\x20]/g, '');
          if (/^(javascript|vbscript|file|data):/i.test(bare) && !/icon/.test(node.rel)) say(`address ${value}`);
          try {
            const url = new URL(value, document.baseURI);
            if (url.hostname === host) say(`address ${value}`);
          } catch (error) { say(`broken address ${value}`); }
        }
      }
      if (node.shadowRoot) visit(node.shadowRoot);
      if (tag === 'template') visit(node.content);
    }
  };
  visit(document);
  return problems;
}
