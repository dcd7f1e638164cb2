Scalar.createApiReference("#app", {
  url: "/openapi.yaml",
  proxyUrl: "", // requests go straight to this server
  withDefaultFonts: false, // the fonts are elsewhere, and this page works offline
  telemetry: false,
  agent: {disabled: true},
  mcp: {disabled: true},
  hideClientButton: true,
  showDeveloperTools: "never",
  persistAuth: false,
});
