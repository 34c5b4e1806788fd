/*
 * racks_kubernetes.c - reads the node labels in the output of `kubectl get nodes -o json`. Pure.
 */
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "base/quote.h"
#include "network/topo/racks_parts.h"

#define REGION "topology.kubernetes.io/region"
#define ZONE "topology.kubernetes.io/zone"

/*
 * Labels that name the switch next to a node, by origin: the cluster's operators, NVIDIA's topograph (newer and
 * older names), Amazon, Google. The last resort is the zone.
 */
static const char *const usual_labels[] = {
	"topology.kubernetes.io/rack",
	"fabric.topograph.run/tier-0",
	"network.topology.nvidia.com/leaf",
	"topology.k8s.aws/network-node-layer-3",
	"cloud.google.com/gce-topology-subblock",
	"rack",
	ZONE,
};

struct nodes {
	struct racks_hosts hosts;
	const json_t **labels; /* by host; NULL: its node was not found yet */
	struct error *err;
};

static const json_t *child(const json_t *object, const char *key)
{
	return json_object_get(object, key);
}

static enum esp_status label_hosts(struct nodes *nodes, const json_t *name, const json_t *labels)
{
	const char *text = json_string_value(name);
	char shown[QUOTE_TEXT];
	uint32_t at = 0, host;

	while (text && (host = racks_hosts_next(&nodes->hosts, text, strlen(text), &at)) < nodes->hosts.count) {
		if (nodes->labels[host] && nodes->labels[host] != labels)
			return error_set(nodes->err, ESP_EPARSE, "two of Kubernetes' nodes are host %s",
			                 quote(nodes->hosts.names[host], strlen(nodes->hosts.names[host]), shown));
		nodes->labels[host] = labels;
	}
	return ESP_OK;
}

/* One node: its name, its label with the host name, and its addresses. */
static enum esp_status read_node(struct nodes *nodes, const json_t *node, size_t index)
{
	const json_t *metadata = child(node, "metadata"), *labels = child(metadata, "labels");
	const json_t *addresses = child(child(node, "status"), "addresses"), *address;
	size_t i;

	if (!json_is_string(child(metadata, "name")))
		return error_set(nodes->err, ESP_EPARSE,
		                 "items[%zu] has no metadata.name; kubectl get nodes -o json prints what is wanted", index);
	if (!json_is_object(labels))
		return ESP_OK; /* a node without labels; if it is asked for, the error comes later */
	enum esp_status status = label_hosts(nodes, child(metadata, "name"), labels);
	if (status == ESP_OK)
		status = label_hosts(nodes, child(labels, "kubernetes.io/hostname"), labels);
	json_array_foreach(addresses, i, address) {
		if (status == ESP_OK)
			status = label_hosts(nodes, child(address, "address"), labels);
	}
	return status;
}

static bool all_have(const struct nodes *nodes, const char *key)
{
	for (uint32_t i = 0; i < nodes->hosts.count; i++) {
		if (!json_is_string(child(nodes->labels[i], key)))
			return false;
	}
	return true;
}

/* The rack's label; NULL with the reason in err. */
static const char *choose_label(const struct nodes *nodes, const char *label)
{
	char shown[QUOTE_TEXT], key[QUOTE_TEXT];

	for (size_t i = 0; !label && i < sizeof(usual_labels) / sizeof(usual_labels[0]); i++) {
		if (all_have(nodes, usual_labels[i]))
			return usual_labels[i];
	}
	if (label && all_have(nodes, label))
		return label;
	if (!label) {
		(void)error_set(nodes->err, ESP_EPARSE,
		                "the nodes have none of the labels that usually name racks, such as %s: say which one does "
		                "(--rack-label)", usual_labels[0]);
		return NULL;
	}
	for (uint32_t i = 0; i < nodes->hosts.count; i++) {
		if (!json_is_string(child(nodes->labels[i], label))) {
			(void)error_set(nodes->err, ESP_EPARSE, "host %s has no label %s",
			                quote(nodes->hosts.names[i], strlen(nodes->hosts.names[i]), shown),
			                quote(label, strlen(label), key));
			break;
		}
	}
	return NULL;
}

static enum esp_status number_hosts(const struct nodes *nodes, const char *label, struct racks *out)
{
	const char *keys[3];
	uint32_t levels = 0;
	const char *rack = choose_label(nodes, label);

	if (!rack)
		return ESP_EPARSE;
	if (all_have(nodes, REGION) && strcmp(rack, REGION) != 0)
		keys[levels++] = REGION;
	if (all_have(nodes, ZONE) && strcmp(rack, ZONE) != 0)
		keys[levels++] = ZONE;
	keys[levels++] = rack;
	const char **cells = calloc((size_t)nodes->hosts.count * levels + 1, sizeof(*cells));
	if (!cells)
		return error_set(nodes->err, ESP_ENOMEM, "no memory for the racks of %u hosts", nodes->hosts.count);
	for (size_t i = 0; i < (size_t)nodes->hosts.count * levels; i++)
		cells[i] = json_string_value(child(nodes->labels[i / levels], keys[i % levels]));
	enum esp_status status = racks_number(cells, nodes->hosts.count, levels, out, nodes->err);
	free(cells);
	if (status == ESP_OK)
		out->label = rack;
	return status;
}

static enum esp_status read_document(struct nodes *nodes, const json_t *document, const char *label, struct racks *out)
{
	const json_t *items = child(document, "items"), *item;
	enum esp_status status = ESP_OK;
	char shown[QUOTE_TEXT];
	size_t i;

	if (!json_is_array(items))
		return error_set(nodes->err, ESP_EPARSE, "\"items\" is %s; kubectl get nodes -o json prints what is wanted",
		                 items ? "no list" : "missing");
	json_array_foreach(items, i, item) {
		if (status == ESP_OK)
			status = read_node(nodes, item, i);
	}
	for (uint32_t host = 0; status == ESP_OK && host < nodes->hosts.count; host++) {
		const char *name = nodes->hosts.names[host];

		if (!nodes->labels[host])
			status = error_set(nodes->err, ESP_EPARSE, "none of Kubernetes' nodes that have labels is host %s",
			                   quote(name, strlen(name), shown));
	}
	return status == ESP_OK ? number_hosts(nodes, label, out) : status;
}

static json_t *open_document(const char *text, size_t length, struct error *err)
{
	json_error_t reason;
	json_t *document = json_loadb(text, length, 0, &reason);
	char shown[QUOTE_TEXT];

	if (!document)
		(void)error_set(err, ESP_EPARSE, "line %d: no JSON: %s", reason.line,
		                quote(reason.text, strlen(reason.text), shown));
	return document;
}

enum esp_status racks_names_kubernetes(const char *text, size_t length, struct racks_names *out, struct error *err)
{
	json_t *document = open_document(text, length, err);
	enum esp_status status = document ? ESP_OK : ESP_EPARSE;
	const json_t *item;
	size_t i;

	json_array_foreach(child(document, "items"), i, item) {
		const char *name = json_string_value(child(child(item, "metadata"), "name"));

		if (status == ESP_OK && name)
			status = racks_names_add(out, name, strlen(name), err);
	}
	json_decref(document);
	return status;
}

enum esp_status racks_read_kubernetes(const char *text, size_t length, const char *label, const char *const *hosts,
                                      uint32_t count, struct racks *out, struct error *err)
{
	struct nodes nodes = {.err = err};
	json_t *document = open_document(text, length, err);

	if (!document)
		return ESP_EPARSE;
	enum esp_status status = racks_hosts_init(&nodes.hosts, hosts, count, err);
	if (status == ESP_OK)
		/* NOLINT(bugprone-sizeof-expression): pointers are meant */
		nodes.labels = calloc(count, sizeof(const json_t *));
	if (status == ESP_OK && !nodes.labels)
		status = error_set(err, ESP_ENOMEM, "no memory for the racks of %u hosts", count);
	else if (status == ESP_OK)
		status = read_document(&nodes, document, label, out);
	free(nodes.labels);
	racks_hosts_fini(&nodes.hosts);
	json_decref(document);
	return status;
}
