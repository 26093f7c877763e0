/* tuner.h from strict C11, without a daemon: it compiles, links, and its errors say what was wrong. */
#include <stdio.h>
#include <string.h>

#include "tuner.h"

static int failures = 0;

static void expect(int condition, const char* what) {
  if (!condition) {
    fprintf(stderr, "failed: %s (last error: %s)\n", what, tuner_last_error(NULL));
    ++failures;
  }
}

static void on_upgrade(tuner_kernel* kernel, uint64_t generation, void* user) {
  (void)kernel;
  (void)generation;
  (void)user;
}

int main(void) {
  tuner_options options = TUNER_OPTIONS_INIT;
  tuner_client* client = NULL;
  tuner_kernel* kernel = NULL;
  tuner_launch_args args = TUNER_LAUNCH_ARGS_INIT;
  tuner_error_parts parts;
  tuner_kernel_facts facts;
  const tuner_dim dims[] = {{"m", 64}, {"n", 64}, {"k", 64}};
  const tuner_attribute attributes[] = {{"dtype", "bf16"}};

  expect(strcmp(tuner_last_error(NULL), "") == 0, "no error before the first");

  options.socket_path = "/nonexistent/tunerd.sock";
  options.client_name = "c test";
  expect(tuner_connect(&options, &client) == TUNER_IO, "connecting to nothing is an I/O error");
  expect(client == NULL, "nothing is written on failure");
  expect(strstr(tuner_last_error(client), "/nonexistent/tunerd.sock") != NULL, "the error names the socket");

  memset(&parts, 0, sizeof parts);
  parts.struct_size = sizeof parts;
  expect(tuner_last_error_parts(client, &parts) == TUNER_OK, "the parts of an error");
  expect(parts.status == TUNER_IO && strcmp(parts.field, "socket") == 0, "status and field are there");

  expect(tuner_get(client, "gemm", dims, 3, attributes, 1, TUNER_NOW, 0, &kernel) == TUNER_INVALID_ARGUMENT,
         "a get without a client");
  expect(tuner_launch(kernel, NULL, &args) == TUNER_INVALID_ARGUMENT, "a launch without a kernel");
  expect(tuner_kernel_load(kernel) == TUNER_INVALID_ARGUMENT, "a load without a kernel");
  memset(&facts, 0, sizeof facts);
  facts.struct_size = sizeof facts;
  expect(tuner_kernel_info(kernel, &facts) == TUNER_INVALID_ARGUMENT, "facts without a kernel");
  expect(tuner_kernel_workspace(kernel, NULL, 0, NULL, NULL, NULL) == TUNER_INVALID_ARGUMENT,
         "workspace without a kernel");
  expect(tuner_subscribe(client, on_upgrade, NULL) == TUNER_INVALID_ARGUMENT, "a subscription without a client");
  expect(tuner_connected(client) == 0, "nobody is not connected");
  tuner_kernel_release(kernel);
  expect(tuner_close(client) == TUNER_OK, "closing nothing is fine");

  if (failures == 0) printf("tuner.h works from C11\n");
  return failures == 0 ? 0 : 1;
}
