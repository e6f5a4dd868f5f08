"""Fields of `daytona_api_client` 0.231.0 and `daytona_toolbox_api_client` 0.226.1.

Of an answer it has the fields that the client's models require; of a request all that they know.
"""

REQUESTS = {
    "/api/sandbox": "name snapshot user env labels public networkBlockAll kvm networkAllowList "
    "domainAllowList outboundProxyUrl otelEndpointOverride target cpu gpu gpuType spot memory disk "
    "autoStopInterval autoPauseInterval autoArchiveInterval autoDeleteInterval ttlMinutes "
    "queueTimeout volumes buildInfo linkedSandbox secrets",
    "/api/volumes": "name",
    "/process/execute": "command cwd envs timeout",
    "/last-activity": "activityType",
}
BUILD_INFO = "dockerfileContent contextHashes"
SANDBOX_VOLUME = "volumeId mountPath subpath"
SANDBOX = (
    "id organizationId name user env labels public networkBlockAll kvm target cpu gpu memory disk "
    "toolboxProxyUrl"
)
SANDBOX_LIST_ITEM = (
    "id organizationId name target user public networkBlockAll cpu gpu memory disk labels "
    "toolboxProxyUrl"
)
LIST_SANDBOXES_RESPONSE = "items nextCursor"
VOLUME_DTO = "id name organizationId state createdAt updatedAt errorReason"
STATES = (
    "creating restoring destroyed destroying started stopped starting stopping error build_failed "
    "pending_build building_snapshot unknown pulling_snapshot archived archiving resizing "
    "snapshotting forking pausing paused resuming"
)
PASSING = (
    "creating restoring starting stopping pending_build building_snapshot unknown pulling_snapshot "
    "resizing snapshotting forking pausing resuming"
)
