// The page around Swagger UI. It has no script or style of its own in the markup, so that the Content-Security-Policy can forbid both.

export const pageHtml = `<!doctype html>
<html lang="en">
  <head>
    <meta charset="utf-8">
    <meta name="viewport" content="width=device-width, initial-scale=1">
    <title>Document Relay API</title>
    <link rel="icon" type="image/png" href="docs/favicon-32x32.png">
    <link rel="stylesheet" href="docs/swagger-ui.css">
    <link rel="stylesheet" href="docs/page.css">
  </head>
  <body>
    <div id="reference"></div>
    <noscript>This page needs JavaScript. The description it shows is <a href="openapi.json">openapi.json</a>.</noscript>
    <script src="docs/swagger-ui-bundle.js"></script>
    <script src="docs/page.js"></script>
  </body>
</html>
`

// the validator is a service on the Internet that is told our address
export const pageScript = `SwaggerUIBundle({
  url: 'openapi.json',
  dom_id: '#reference',
  deepLinking: true,
  docExpansion: 'list',
  defaultModelsExpandDepth: 0,
  filter: true,
  validatorUrl: null,
})
`

// answers here have no links; the rest keeps a narrow window from scrolling sideways
export const pageStyle = `body { margin: 0; }
.swagger-ui .wrapper { max-width: 1200px; }
.swagger-ui .info { margin: 24px 0; }
.swagger-ui .scheme-container { padding: 12px 0; }
.swagger-ui .response-col_links { display: none; }
.swagger-ui .servers > label select { max-width: 100%; }
.swagger-ui .computed-url { overflow-wrap: anywhere; }
.swagger-ui .computed-url code { display: inline-block; padding: 0; }
.swagger-ui .opblock-body table, .swagger-ui .opblock-body pre { max-width: 100%; }
@media (max-width: 640px) {
  .swagger-ui .scheme-container .schemes { display: block; }
  .swagger-ui .opblock-summary-path { overflow-wrap: anywhere; }
  .swagger-ui .responses-table > tbody > tr > td, .swagger-ui .responses-table > thead > tr > td { padding-left: 0; }
  .swagger-ui .parameters-col_description { margin-bottom: 1em; }
}
`
