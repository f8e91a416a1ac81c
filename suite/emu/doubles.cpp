#include "suite/emu/doubles.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>
#include <string>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

char *device_memory(size_t bytes, size_t offset)
{
	void *p = nullptr;
	cr_assert(cudaMalloc(&p, bytes + offset) == cudaSuccess);
	return static_cast<char *>(p) + offset;
}

char *upload(stored t, const std::vector<float> &x, size_t offset)
{
	size_t bytes = x.size() * ck_emu_size(t);
	std::vector<char> host(bytes);
	for (size_t i = 0; i < x.size(); i++)
		ck_emu_put(t, host.data(), (int64_t)i, x[i]);
	char *p = device_memory(bytes, offset);
	cr_assert(cudaMemcpyAsync(p, host.data(), bytes, cudaMemcpyHostToDevice, nullptr) == cudaSuccess);
	cr_assert(cudaDeviceSynchronize() == cudaSuccess);
	return p;
}

std::vector<float> download(stored t, const void *from, size_t n)
{
	std::vector<char> host(n * ck_emu_size(t));
	cr_assert(cudaDeviceSynchronize() == cudaSuccess);
	cr_assert(cudaMemcpyAsync(host.data(), from, host.size(), cudaMemcpyDeviceToHost, nullptr) == cudaSuccess);
	cr_assert(cudaDeviceSynchronize() == cudaSuccess);
	std::vector<float> x(n);
	ck_emu_widen(t, host.data(), 0, (int64_t)n, x.data());
	return x;
}

std::vector<float> eighths(size_t n, uint32_t seed)
{
	std::vector<float> x(n);
	for (float &v : x) {
		seed = seed * 1664525 + 1013904223; /* Numerical Recipes' */
		v = (float)((int)(seed >> 16 & 63) - 32) / 8;
	}
	return x;
}

float rounded(stored t, double v)
{
	uint32_t bits = 0;
	ck_emu_put(t, &bits, 0, (float)v);
	return ck_emu_get(t, &bits, 0);
}

/* ---- wrong calls ---------------------------------------------------------------------------------------------------------- */

/* All that the child writes to stderr. */
static std::string said_by_child(const std::function<int()> &call, int *status)
{
	int end[2];
	cr_assert(pipe(end) == 0);
	pid_t child = fork();
	if (child == 0) {
		struct rlimit none = {0, 0};
		setrlimit(RLIMIT_CORE, &none);
		dup2(end[1], STDERR_FILENO);
		close(end[0]);
		int result = call();
		dprintf(STDERR_FILENO, "%d:%s", result, ck_emu_refusal());
		_exit(0);
	}
	close(end[1]);
	std::string said;
	char part[512];
	for (ssize_t n; (n = read(end[0], part, sizeof part)) > 0;)
		said.append(part, (size_t)n);
	close(end[0]);
	cr_assert(waitpid(child, status, 0) == child);
	return said;
}

void expect_refused(const char *name, int status, const char *reason, const std::function<int()> &call)
{
	int child;
	std::string said = said_by_child(call, &child);
	bool for_reason = said.find(reason) != std::string::npos;
	if (status == ENDS) {
		cr_expect(WIFSIGNALED(child) && WTERMSIG(child) == SIGABRT, "%s: must end the program, but does not: %s", name,
			  said.c_str());
	} else {
		int got = -1;
		cr_expect(WIFEXITED(child) && sscanf(said.c_str(), "%d:", &got) == 1 && got == status,
			  "%s: status %d, not %d (%s)", name, got, status, said.c_str());
	}
	cr_expect(for_reason, "%s: for another reason than '%s': %s", name, reason, said.c_str());
}
