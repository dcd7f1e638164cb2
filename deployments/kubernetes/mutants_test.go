package kubernetes

import (
	"strings"
	"testing"
)

// A mutant is a mistake in a rendered overlay, made by replacing a text wherever it is after a mark, or only the first.
type mutant struct {
	overlay string // "" is production
	after   string // from where on; "": from the beginning
	old     string
	new     string
	finding string // part of what must be found
}

// orders and payments mark where their StatefulSets begin, migrateOrders where the Job of orders does.
const (
	orders        = "feira.shop/step: run\n  name: orders\n  namespace: feira\nspec:\n  minReadySeconds"
	payments      = "feira.shop/step: run\n  name: payments\n  namespace: feira\nspec:\n  minReadySeconds"
	gateway       = "kind: Deployment"
	migrateOrders = "name: migrate-orders"
)

var mutants = map[string]mutant{
	"field misspelt":          {after: orders, old: "terminationGracePeriodSeconds", new: "terminationGracePeriodSecond", finding: "unknown field"},
	"field in a wrong place":  {after: orders, old: "      containers:\n      - args", new: "      replicas: 2\n      containers:\n      - args", finding: "unknown field"},
	"number as text":          {after: orders, old: "periodSeconds: 10", new: `periodSeconds: "10"`, finding: "cannot be decoded"},
	"text as number":          {old: `FEIRA_KAFKA_REPLICATION: "3"`, new: "FEIRA_KAFKA_REPLICATION: 3", finding: "cannot be decoded"},
	"unknown version":         {old: "apiVersion: autoscaling/v2", new: "apiVersion: autoscaling/v2beta2", finding: "no kind"},
	"field twice":             {after: orders, old: "serviceAccountName: orders", new: "serviceAccountName: orders\n      serviceAccountName: orders", finding: "already set"},
	"custom field misspelt":   {old: "podMetricsEndpoints", new: "podMetricEndpoints", finding: "unknown field"},
	"object twice":            {after: "kind: PodDisruptionBudget", old: "name: orders", new: "name: fraud", finding: "is there twice"},
	"selector of a workload":  {after: orders, old: "app.kubernetes.io/name: orders", new: "app.kubernetes.io/name: order", finding: "does not mean its own pods"},
	"selector too wide":       {after: orders, old: "      app.kubernetes.io/name: orders\n  serviceName", new: "  serviceName", finding: "its selector also means the pods of"},
	"spread of others":        {after: "topologySpreadConstraints", old: "app.kubernetes.io/name: gateway", new: "app.kubernetes.io/name: orders", finding: "spread constraint"},
	"service without pods":    {after: "kind: Service\n", old: "  selector:\n    app.kubernetes.io/component: service", new: "  selector:\n    app.kubernetes.io/component: services", finding: "pods of 0 workloads"},
	"service for two":         {after: "kind: Service\n", old: "\n    app.kubernetes.io/name: catalog\n---", new: "\n---", finding: "pods of 7 workloads"},
	"port that is not there":  {after: "kind: Service\n", old: "targetPort: http", new: "targetPort: https", finding: `no port named "https"`},
	"serviceName":             {after: orders, old: "serviceName: orders", new: "serviceName: order", finding: "for serviceName"},
	"ingress to nobody":       {after: "kind: Ingress", old: "name: gateway", new: "name: gatway", finding: `no Service "gatway"`},
	"ingress to no port":      {after: "kind: Ingress", old: "name: http\n", new: "name: web\n", finding: `no port named "web"`},
	"metrics for the public":  {after: "kind: Ingress", old: "path: /docs", new: "path: /", finding: "makes /metrics public"},
	"ingress in the clear":    {after: "kind: Ingress", old: "    - shop.example.com", new: "    - example.com", finding: "has no TLS"},
	"budget of nobody":        {after: "name: orders\n  namespace: feira\nspec:\n  maxUnavailable", old: "app.kubernetes.io/name: orders", new: "app.kubernetes.io/name: order", finding: "StatefulSet/orders: has 0 disruption budgets"},
	"budget that blocks":      {after: "kind: PodDisruptionBudget", old: "maxUnavailable: 1", new: "maxUnavailable: 0", finding: "maxUnavailable must be 1"},
	"scaling nobody":          {after: "kind: StatefulSet\n    name: orders", old: "name: orders", new: "name: order", finding: "there is no StatefulSet/order of"},
	"scaling another kind":    {after: "scaleTargetRef:", old: "kind: StatefulSet", new: "kind: Deployment", finding: "there is no Deployment/"},
	"more than partitions":    {after: "kind: HorizontalPodAutoscaler", old: "maxReplicas: 6", new: "maxReplicas: 7", finding: "the rest would be idle"},
	"replicas of two masters": {after: orders, old: "minReadySeconds", new: "replicas: 2\n  minReadySeconds", finding: "undoes the autoscaler"},
	"one replica":             {after: "kind: HorizontalPodAutoscaler", old: "minReplicas: 2", new: "minReplicas: 1", finding: "minReplicas"},
	"scraping no port":        {after: "kind: PodMonitor", old: "port: http", new: "port: metrics", finding: `no port named "metrics"`},
	"scraping without some":   {after: "kind: PodMonitor", old: "      - gateway\n", new: "", finding: "Deployment/gateway is not scraped"},
	"alerts without job":      {after: "kind: PodMonitor", old: "replacement: feira", new: "replacement: shop", finding: "label job must be feira"},

	"root":                       {after: orders, old: "runAsNonRoot: true", new: "runAsNonRoot: false", finding: "not restricted: runAsNonRoot"},
	"uid 0":                      {after: orders, old: "runAsUser: 65532", new: "runAsUser: 0", finding: "not restricted: runAsUser=0"},
	"capability":                 {after: orders, old: "            drop:\n            - ALL", new: "            add:\n            - NET_ADMIN", finding: "capabilities"},
	"privilege escalation":       {after: orders, old: "allowPrivilegeEscalation: false", new: "allowPrivilegeEscalation: true", finding: "allowPrivilegeEscalation"},
	"system calls":               {after: orders, old: "type: RuntimeDefault", new: "type: Unconfined", finding: "seccomp"},
	"host network":               {after: orders, old: "enableServiceLinks: false", new: "hostNetwork: true\n      enableServiceLinks: false", finding: "host namespaces"},
	"namespace not restricted":   {old: "pod-security.kubernetes.io/enforce: restricted", new: "pod-security.kubernetes.io/enforce: baseline", finding: "must enforce"},
	"writable root":              {after: orders, old: "readOnlyRootFilesystem: true", new: "readOnlyRootFilesystem: false", finding: "can be written"},
	"no memory limit":            {after: orders, old: "            memory: 256Mi\n", new: "", finding: "request for memory"},
	"token":                      {after: orders, old: "automountServiceAccountToken: false", new: "automountServiceAccountToken: true", finding: "mounts a token"},
	"another's account":          {after: orders, old: "serviceAccountName: orders", new: "serviceAccountName: payments", finding: `runs as "payments"`},
	"no account":                 {after: "kind: ServiceAccount", old: "name: orders", new: "name: order", finding: `no ServiceAccount "orders"`},
	"image without tag":          {after: orders, old: "feira:0.1.0", new: "feira", finding: "does not say which one"},
	"image latest":               {after: orders, old: "feira:0.1.0", new: "feira:latest", finding: "does not say which one"},
	"no probe":                   {after: orders, old: "startupProbe:", new: "livenessProbe:", finding: "already set"},
	"probe of no port":           {after: orders, old: "            port: http", new: "            port: https", finding: "which no container names"},
	"probe of no path":           {after: orders, old: "path: /readyz", new: "path: /healthz", finding: "feira does not answer /healthz"},
	"liveness by dependencies":   {after: orders, old: "path: /livez", new: "path: /readyz", finding: "liveness probe asks /readyz"},
	"killed while stopping":      {after: orders, old: "terminationGracePeriodSeconds: 45", new: "terminationGracePeriodSeconds: 25", finding: "must be above 25"},
	"stops at once":              {after: orders, old: "lifecycle:\n          preStop:\n            sleep:\n              seconds: 5\n        livenessProbe", new: "livenessProbe", finding: "needs a preStop sleep"},
	"secret written down":        {after: payments, old: "- name: FEIRA_PROVIDER_KEY\n          valueFrom:\n            secretKeyRef:\n              key: FEIRA_PROVIDER_KEY\n              name: feira-payments", new: "- name: FEIRA_PROVIDER_KEY\n          value: hunter2", finding: "FEIRA_PROVIDER_KEY is a secret"},
	"secret in a ConfigMap":      {old: "  FEIRA_STRICT:", new: "  FEIRA_KAFKA_PASSWORD: hunter2\n  FEIRA_STRICT:", finding: "FEIRA_KAFKA_PASSWORD is a secret"},
	"password in an address":     {old: "https://payments.example.com", new: "https://feira:hunter2@payments.example.com", finding: "a secret is written down"},
	"Secret object":              {old: "kind: ServiceAccount\nmetadata:\n", new: "kind: Secret\nstringData: {a: b}\nmetadata:\n", finding: "unknown field"},
	"another's secret":           {after: orders, old: "name: feira-orders", new: "name: feira-payments", finding: `StatefulSet/orders: sees secret "feira-payments"`},
	"another's secret, migrated": {after: migrateOrders, old: "name: feira-orders", new: "name: feira-payments", finding: `Job/migrate-orders: sees secret "feira-payments"`},
	"another's address":          {after: orders, old: "key: FEIRA_POSTGRES_ORDERS", new: "key: FEIRA_POSTGRES_PAYMENTS", finding: "comes from the key"},
	"no such ConfigMap":          {after: orders, old: "configMapRef:\n            name: feira-", new: "configMapRef:\n            name: fiera-", finding: "there is no ConfigMap"},
	"no such thresholds":         {old: "configMap:\n          name: fraud-thresholds", new: "configMap:\n          name: fraud-threshold", finding: `there is no ConfigMap "fraud-threshold"`},
	"volume not mounted":         {after: orders, old: "name: jwks\n          readOnly", new: "name: ca\n          readOnly", finding: "is not mounted"},

	"service forgotten":     {old: "migrate-loyalty", new: "migrate-loyal", finding: "no Job migrate-loyalty"},
	"service of no shop":    {after: migrateOrders, old: "- orders\n", new: "- order\n", finding: "runs"},
	"variable misspelt":     {after: orders, old: "name: FEIRA_MEMBER", new: "name: FEIRA_MEMBERS", finding: "knows no FEIRA_MEMBERS"},
	"setting misspelt":      {old: "  FEIRA_DEADLINE", new: "  FEIRA_DEADLIN", finding: "knows no FEIRA_DEADLIN"},
	"port not listened on":  {after: orders, old: "containerPort: 8081", new: "containerPort: 8080", finding: "FEIRA_LISTEN must be"},
	"loopback only":         {after: orders, old: "value: 0.0.0.0:8081", new: "value: 127.0.0.1:8081", finding: "FEIRA_LISTEN must be"},
	"member of all":         {after: orders, old: "fieldPath: metadata.name", new: "fieldPath: metadata.namespace", finding: "FEIRA_MEMBER must be"},
	"limits by the gateway": {after: orders, old: "name: FEIRA_BEHIND_GATEWAY\n          value: \"true\"", new: "name: FEIRA_BEHIND_GATEWAY\n          value: \"false\"", finding: "behind the gateway"},
	"upstream to nobody":    {after: gateway, old: "orders=orders:8081", new: "orders=orders:8080", finding: "leads to no port"},
	"upstream forgotten":    {after: gateway, old: ",loyalty=loyalty:8081", new: "", finding: "the API has"},

	"Kafka in the clear": {old: `FEIRA_KAFKA_TLS: "true"`, new: `FEIRA_KAFKA_TLS: "false"`, finding: "FEIRA_KAFKA_TLS must be"},
	"not strict":         {old: "  FEIRA_STRICT: \"true\"\n", new: "", finding: "FEIRA_STRICT must be"},
	"nobody signs in":    {after: orders, old: "key: FEIRA_KAFKA_USER\n", new: "optional: true\n              key: FEIRA_KAFKA_USER\n", finding: "FEIRA_KAFKA_USER may be missing"},
	"traces to nobody":   {overlay: "traced", after: "name: traces", old: "      - gateway\n", new: "", finding: "closed, and should not be: gateway → monitoring/otel-collector:4318"},

	"all may speak":        {after: "name: dns\n", old: "  - ports:", new: "  - {}\n  - ports:", finding: "open, and should not be: topics → anybody"},
	"all may be spoken to": {after: "name: deny-all", old: "  - Ingress\n", new: "", finding: "no policy for Ingress"},
	"a service left out":   {after: "name: api\n", old: "      - loyalty\n", new: "", finding: "closed, and should not be: gateway → loyalty:8081"},
	"fraud at the provider": {after: "name: provider\n", old: "app.kubernetes.io/name: payments", new: "app.kubernetes.io/name: fraud",
		finding: "open, and should not be: fraud → 192.0.2.128/26:443"},
	"gateway at Postgres": {after: "name: postgres\n", old: "      - migrate\n", new: "      - gateway\n", finding: "open, and should not be: gateway → 192.0.2.64/26:5432"},
	"any port":            {after: "name: kafka\n", old: "    - port: 9093\n      protocol: TCP\n", new: "    - protocol: TCP\n", finding: "open, and should not be"},
	"policy for nobody":   {after: "name: provider\n", old: "app.kubernetes.io/name: payments", new: "app.kubernetes.io/name: payment", finding: "binds no pod"},
	"simulator closed": {overlay: "development", after: "name: provider\n  namespace: feira\nspec:\n  ingress", old: "app.kubernetes.io/name: payments", new: "app.kubernetes.io/name: orders",
		finding: "closed, and should not be: payments → provider:8081"},
	"writable Postgres": {overlay: "development", after: "image: postgres", old: "readOnlyRootFilesystem: true", new: "readOnlyRootFilesystem: false", finding: "StatefulSet/postgres: its root"},
}

// TestEveryMistakeIsFound shows that the checks can fail: each mutant must be found by name.
func TestEveryMistakeIsFound(t *testing.T) {
	t.Parallel()
	rendered := map[string]string{}
	for overlay, dir := range overlays {
		rendered[overlay] = build(t, dir)
	}
	for name, m := range mutants {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			overlay := m.overlay
			if overlay == "" {
				overlay = "production"
			}
			at := strings.Index(rendered[overlay], m.after)
			if at < 0 || !strings.Contains(rendered[overlay][at:], m.old) {
				t.Fatalf("%s has no %q after %q: the mutant changes nothing", overlay, m.old, m.after)
			}
			text := rendered[overlay][:at] + strings.Replace(rendered[overlay][at:], m.old, m.new, 1)
			found := strings.Join(check(t, overlay, text), "\n")
			if !strings.Contains(found, m.finding) {
				t.Errorf("not found: %q; found were:\n%s", m.finding, found)
			}
		})
	}
}
