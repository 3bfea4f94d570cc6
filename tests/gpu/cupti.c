// SPDX-License-Identifier: GPL-2.0-only
/*
 * cupti.c: a library for memtrace --cupti: what CUPTI counts in the machine code of each kernel, as
 * "cupti KERNEL METRIC VALUE", by its SASS metrics, which need no counter of the hardware. memtrace.py
 * holds it against what was recorded. Where CUPTI refuses: a line with its reason.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cuda.h>
#include <cupti_profiler_target.h>
#include <cupti_result.h>
#include <cupti_sass_metrics.h>
#include <cupti_target.h>

#define SIZED(type)                              \
	(type)                                   \
	{                                        \
		.structSize = type##_STRUCT_SIZE \
	}

static struct {
	const char *name;
	uint64_t id;
	int known;
} metrics[] = {
	{ "smsp__sass_inst_executed_op_global", 0, 0 }, { "smsp__sass_inst_executed_op_shared", 0, 0 },
	{ "smsp__sass_sectors_mem_global", 0, 0 },	{ "smsp__sass_sectors_mem_global_ideal", 0, 0 },
	{ "smsp__sass_l1tex_tags_mem_global", 0, 0 },	{ "smsp__sass_l1tex_pipe_lsu_wavefronts_mem_shared", 0, 0 },
};
#define NR_METRICS (sizeof(metrics) / sizeof(*metrics))

static int check(CUptiResult err, const char *what)
{
	const char *name = "?";

	if (!err)
		return 0;
	cuptiGetResultString(err, &name);
	fprintf(stderr, "cupti: %s: %s\n", what, name);
	return -1;
}
#define CHECK(fn, p) check(fn(p), #fn)

static int find_metrics(const char *chip, CUpti_SassMetrics_Config *configs, size_t *nr)
{
	*nr = 0;
	for (size_t i = 0; i < NR_METRICS; i++) {
		CUpti_SassMetrics_GetProperties_Params p = SIZED(CUpti_SassMetrics_GetProperties_Params);

		p.pChipName = chip;
		p.pMetricName = metrics[i].name;
		if (cuptiSassMetricsGetProperties(&p))
			continue;
		metrics[i].id = p.metric.metricId;
		metrics[i].known = 1;
		configs[(*nr)++] =
			(CUpti_SassMetrics_Config){ p.metric.metricId, CUPTI_SASS_METRICS_OUTPUT_GRANULARITY_GPU };
	}
	if (*nr)
		return 0;
	fprintf(stderr, "cupti: %s has none of the metrics\n", chip);
	return -1;
}

/* For the device of the current context. */
static int set_up(void)
{
	CUpti_SassMetricsSetConfig_Params set = SIZED(CUpti_SassMetricsSetConfig_Params);
	CUpti_Profiler_Initialize_Params init = SIZED(CUpti_Profiler_Initialize_Params);
	CUpti_Device_GetChipName_Params chip = SIZED(CUpti_Device_GetChipName_Params);
	CUpti_SassMetrics_Config configs[NR_METRICS];

	if (CHECK(cuptiProfilerInitialize, &init) || CHECK(cuptiDeviceGetChipName, &chip) ||
	    find_metrics(chip.pChipName, configs, &set.numOfMetricConfig))
		return -1;
	set.pConfigs = configs;
	return CHECK(cuptiSassMetricsSetConfig, &set);
}

/* Before the first launch, with the context current. 0, or -1 and a line. */
__attribute__((visibility("default"))) int memtrace_cupti_begin(void)
{
	CUpti_SassMetricsEnable_Params p = SIZED(CUpti_SassMetricsEnable_Params);

	p.enableLazyPatching = 1;
	return set_up() ? -1 : CHECK(cuptiSassMetricsEnable, &p);
}

/* The sums of each function that has records. Records of a function need not follow one another. */
static void print(const CUpti_SassMetrics_Data *data, size_t records, size_t each)
{
	for (size_t r = 0; r < records; r++) {
		const char *kernel = data[r].functionName;
		uint64_t sums[NR_METRICS] = { 0 };
		size_t first = 0;

		while (kernel && first < r && (!data[first].functionName || strcmp(data[first].functionName, kernel)))
			first++;
		if (!kernel || first < r)
			continue;
		for (size_t i = r; i < records; i++)
			for (size_t v = 0; v < each && data[i].functionName && !strcmp(data[i].functionName, kernel);
			     v++)
				for (size_t m = 0; m < NR_METRICS; m++)
					if (data[i].pInstanceValues[v].metricId == metrics[m].id)
						sums[m] += data[i].pInstanceValues[v].value;
		for (size_t m = 0; m < NR_METRICS; m++)
			if (metrics[m].known)
				printf("cupti %s %s %llu\n", kernel, metrics[m].name, (unsigned long long)sums[m]);
	}
}

static int flush(size_t records, size_t instances)
{
	CUpti_SassMetricsFlushData_Params p = SIZED(CUpti_SassMetricsFlushData_Params);
	size_t each = instances * NR_METRICS; /* whether instances are of all metrics or of each is not said */
	CUpti_SassMetrics_InstanceValue *values = calloc(records * each + 1, sizeof(*values));
	CUpti_SassMetrics_Data *data = calloc(records + 1, sizeof(*data));
	int err = -1;

	if (!values || !data)
		goto out;
	for (size_t i = 0; i < records; i++) {
		data[i].structSize = sizeof(data[i]);
		data[i].pInstanceValues = values + i * each;
	}
	p.numOfPatchedInstructionRecords = records;
	p.numOfInstances = instances;
	p.pMetricsData = data;
	err = CHECK(cuptiSassMetricsFlushData, &p);
	if (!err)
		print(data, records, each);
out:
	free(values);
	free(data);
	return err;
}

/*
 * When all are done. The first kernel alone has records, with lazy patching or without, whether others
 * are launched before the data is taken or after another enable (CUDA 13.0 on an H100): a process for
 * each.
 */
__attribute__((visibility("default"))) int memtrace_cupti_end(void)
{
	CUpti_SassMetricsGetDataProperties_Params p = SIZED(CUpti_SassMetricsGetDataProperties_Params);

	if (CHECK(cuptiSassMetricsGetDataProperties, &p))
		return -1;
	/* No record is no zero. */
	if (!p.numOfPatchedInstructionRecords) {
		fprintf(stderr, "cupti: nothing was counted\n");
		return -1;
	}
	return flush(p.numOfPatchedInstructionRecords, p.numOfInstances);
}
