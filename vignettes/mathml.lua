-- Formulas as MathML without their TeX source, half the size; for pandoc from
-- 2.17 on, older ones keep the source.
function Math(el)
  if not (pandoc.write and pandoc.WriterOptions) then return el end
  local options = pandoc.WriterOptions({html_math_method = "mathml"})
  local plain = pandoc.Pandoc({pandoc.Plain({el})})
  local html = pandoc.write(plain, "html", options)
  html = html:gsub(' xmlns="[^"]*"', ""):gsub("<annotation.-</annotation>", "")
  html = html:gsub("</?semantics>", ""):gsub(' display="inline"', "")
  -- Brackets stretch, and are what opens or closes a row. Bars need to be told.
  html = html:gsub('<mo stretchy="true" form="%l+">([%(%)%[%]{}])<', "<mo>%1<")
  return pandoc.RawInline("html", html)
end

-- Tables without the classes of rows and without what cells are by default.
function Table(el)
  if not pandoc.write then return el end
  local html = pandoc.write(pandoc.Pandoc({el}), "html4")
  html = html:gsub(' class="odd"', ""):gsub(' class="even"', "")
  html = html:gsub(' class="header"', ""):gsub('<td align="left"', "<td")
  return pandoc.RawBlock("html", html)
end
