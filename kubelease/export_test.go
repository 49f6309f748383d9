package kubelease

// ObjectName and LeaseName export objectName and leaseName for tests.
var (
	ObjectName = objectName
	LeaseName  = leaseName
)
